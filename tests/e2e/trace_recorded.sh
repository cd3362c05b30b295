#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trace_recorded.sh PROGRAM: the verdict on traces that real runs left (tests/data/README.md), word for
# word.  FM_RECORD=1 writes the expected words anew.
. "$(dirname "$0")/lib.sh"
cd "$work"
data=$data/trace
tar -xzf "$data/recorded.tar.gz" || fail "cannot unpack $data/recorded.tar.gz"
for job in slow stall; do
    run 0 "$fathom" trace "$job" --rates none
    sed -n '3,/^$/p' out >said
    [ -z "${FM_RECORD:-}" ] || cp said "$data/$job.verdict"
    diff "$data/$job.verdict" said || fail "the verdict on $job has changed"
done
grep -q "ranks wait for rank 2 (vm), which is [0-9]* % slower" "$data/slow.verdict" || fail "the slowed rank is not named"
grep -q "^The largest single win: make rank 2 (vm) as fast as the others" "$data/slow.verdict" || fail "the advice is not about the slowed rank"
grep -q "^Stalls: .* requests waited" "$data/stall.verdict" || fail "the stall is not named"
