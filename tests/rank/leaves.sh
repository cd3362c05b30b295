#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# leaves.sh PROGRAM: the same sum, bit for bit, on 1, 2, 4 and 8 ranks, as one
# message or in pieces short and long.
here=$(dirname "$0")
want=$("$1") || exit 1
for spread in "2 7000" "2 1001" "4 50000" "4 1001" "8 7000"; do
    set -- "$1" $spread
    got=$("$here/mpirun.sh" "$2" "$1" "$3") || exit 1
    [ "$got" = "$want" ] || { echo "FAILED: $2 ranks, pieces of $3: $got, one rank: $want"; exit 1; }
done
echo "all sums are $want"
