#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuda_engine.sh PROGRAM RANKS: an engine on RANKS emulated GPUs says what one says,
# in several layouts, with steps planned ahead and not.
set -u
program=$1 ranks=$2
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FM_COMM_TIMEOUT=60 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
compared=0

# say NAME LAUNCHER OPTION VALUE...: leaves $work/NAME
say()
{
    name=$1 launch=$2
    shift 2
    $launch "$program" "$data/v3" "$data/tokenizer" "$work/$name" "$@" >"$work/log" 2>&1 && return
    rc=$?
    [ $rc -eq 77 ] && exit 77
    echo "FAILED: $launch $*: status $rc: $(tail -3 "$work/log")"
    exit 1
}

same() # same "PLAIN..." OPTION VALUE...: steps planned ahead (0), or not (1)
{
    each=$1
    shift
    for plain in $each; do
        say many "$here/mpirun.sh $ranks" "$@" disable-overlap-schedule $plain
        cmp "$work/$alone" "$work/many" && compared=$((compared + 1)) && continue
        echo "FAILED: $ranks ranks, $*, disable-overlap-schedule $plain:"
        diff "$work/$alone" "$work/many" | head -20
        exit 1
    done
}

alone=alone
say alone "" disable-overlap-schedule 1
grep -q ' abort ' "$work/alone" || { echo "FAILED: no request was cancelled"; exit 1; }
if [ "$ranks" -eq 2 ]; then
    same "0 1" tp-size 2
    same "0 1" tp-size 2 ep-size 2 dp-size 2 enable-dp-attention 1
    same 0 pp-size 2
else
    same 0 tp-size 4 ep-size 2
    same "0 1" tp-size 4 ep-size 4 dp-size 2 enable-dp-attention 1
fi

# Drafts of the MTP layer, which dummy weights have, change nothing.
drafts="load-format dummy speculative-algorithm NEXTN disable-speculative-adaptive 1"
alone=alone_dummy
say alone_dummy "" disable-overlap-schedule 1 load-format dummy
if [ "$ranks" -eq 2 ]; then
    same 0 $drafts tp-size 2
    same "0 1" $drafts tp-size 2 ep-size 2 dp-size 2 enable-dp-attention 1
    same 0 $drafts pp-size 2
else
    same 0 $drafts tp-size 4 ep-size 4 dp-size 2 enable-dp-attention 1
fi
# Host memory and files under the pools: everything leaves after every step and comes back, while file
# operations fail at random.
tiers="page-size 4 enable-hierarchical-cache 1 hicache-debug-demote 1"
files="hicache-storage-backend file hicache-storage-dir $work/pages"
alone=alone
if [ "$ranks" -eq 2 ]; then
    same 0 $tiers tp-size 2
    same "0 1" $tiers $files hicache-debug-faults 0.1 tp-size 2 ep-size 2 dp-size 2 enable-dp-attention 1
    same 0 $tiers $files pp-size 2
else
    same 0 $tiers $files hicache-debug-faults 0.1 tp-size 4 ep-size 4 dp-size 2 enable-dp-attention 1
fi
echo "$compared times $ranks ranks said what one says"
