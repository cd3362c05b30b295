#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# leaves.sh PROGRAM: the same sum, bit for bit, on 1, 2, 4 and 8 ranks, as one
# message or in pieces short and long.
here=$(dirname "$0")
want=$("$1") || exit 1
for ranks in 2 4 8; do
    for piece in 50000 7000 1001; do
        got=$("$here/mpirun.sh" "$ranks" "$1" "$piece") || exit 1
        [ "$got" = "$want" ] || { echo "FAILED: $ranks ranks, pieces of $piece: $got, one rank: $want"; exit 1; }
    done
done
echo "all sums are $want"
