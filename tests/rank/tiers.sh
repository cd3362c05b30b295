#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tiers.sh PROGRAM RANKS: tiers below the pool, with the model divided in every way: everything
# leaves the pool after every step and comes back from files, and the answers are those of
# one rank without tiers, byte for byte; also after a restart, and while file operations fail.
. "$(dirname "$0")/../e2e/lib.sh"
ranks=$1
model=$data/v3
mpirun=$here/mpirun.sh
export FM_COMM_TIMEOUT=60 FM_THREADS=1
job="--dataset-name generated-shared-prefix --gsp-num-groups 2 --gsp-prompts-per-group 4
    --gsp-system-prompt-len 60 --gsp-question-len 25 --gsp-output-len 12 --num-prompts 8"

details() # details NAME OPTION...
{
    name=$1
    shift
    rm -f "$work/result"
    run 0 $launch "$fathom" bench --quiet --skip-warmup --model-path "$model" $job --return-logprob \
        --output-details "$work/$name.jsonl" --result-filename "$work/result" "$@"
}

launch=""
details alone --max-running-requests 1 --disable-radix-cache --chunked-prefill-size -1
launch="$mpirun $ranks"

n=0
same() # same LAYOUT-OPTION...
{
    case $* in *--pp*) set -- "$@" --context-length 160 ;; esac
    rm -rf "$work/pages"
    for time in first second; do
        details many --page-size 4 --chunked-prefill-size 24 --max-total-tokens 320 --max-running-requests 3 \
            --hicache-storage-backend file --hicache-storage-dir "$work/pages" --hicache-debug-demote "$@"
        cmp -s "$work/alone.jsonl" "$work/many.jsonl" ||
            fail "$ranks ranks, $*, $time time: $(cmp "$work/alone.jsonl" "$work/many.jsonl" 2>&1)"
    done
    n=$((n + 1))
}

loads() # after same: the second time pages came from files
{
    grep -q '"storage_tokens": [1-9]' "$work/result" || fail "no page came from a file: $(cat "$work/result")"
}

dpa="--enable-dp-attention"
if [ "$ranks" -eq 2 ]; then
    same --tp 2
    loads
    [ "$(find "$work/pages" -name '*.page' | wc -l)" -gt 0 ] || fail "no files"
    same --pp 2
    loads
    same --tp 2 --dp 2 $dpa
    loads
    same --dp 2
    loads
    same --tp 2 --hicache-debug-faults 0.1
    same --pp 2 --hicache-debug-faults 0.1
else
    same --tp 2 --pp 2
    loads
    same --tp 4 --ep 2 --dp 2 $dpa
    loads
    same --tp 2 --pp 2 --dp 2 $dpa --hicache-debug-faults 0.05
fi

# The MTP layer's plane moves along, and drafts change nothing.
model=$here/../../models/fathom-tiny
drafts="--speculative-algorithm NEXTN --disable-speculative-adaptive"
launch=""
details alone --max-running-requests 1 --disable-radix-cache --chunked-prefill-size -1
launch="$mpirun $ranks"
if [ "$ranks" -eq 2 ]; then
    same $drafts --tp 2
    loads
    grep -q '"draft_tokens": [1-9]' "$work/result" || fail "nothing was drafted"
    same $drafts --pp 2
    loads
    same $drafts --tp 2 --dp 2 $dpa
else
    same $drafts --tp 2 --pp 2
    loads
fi
echo "$n layouts of $ranks ranks answered from files as one rank does without"
