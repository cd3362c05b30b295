#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tiers.sh PROGRAM RANKS: tiers below the pool, with the model divided in every way that engine.sh
# knows: everything leaves the pool after every step and comes back from files, and the answers are
# those of one rank without tiers, byte for byte; also after a restart, and while file operations fail.
. "$(dirname "$0")/../e2e/lib.sh"
ranks=$1
model=$data/v3
mpirun=$here/mpirun.sh
export FM_COMM_TIMEOUT=60 FM_THREADS=1
job="--dataset-name generated-shared-prefix --gsp-num-groups 2 --gsp-prompts-per-group 3
    --gsp-system-prompt-len 44 --gsp-question-len 13 --gsp-output-len 5 --num-prompts 6"

details() # details NAME OPTION...
{
    name=$1
    shift
    rm -f "$work/result"
    run 0 $launch "$fathom" bench --quiet --skip-warmup --model-path "$model" $job --return-logprob \
        --output-details "$work/$name.jsonl" --result-filename "$work/result" "$@"
}

alone() # what the others are held to
{
    launch=""
    details alone --max-running-requests 1 --disable-radix-cache --chunked-prefill-size -1
    launch="$mpirun $ranks"
}

n=0
same() # same LAYOUT-OPTION...: with what the directory holds
{
    case $* in *--pp*) set -- "$@" --context-length 160 ;; esac
    details many --page-size 4 --chunked-prefill-size 24 --max-total-tokens 320 --max-running-requests 2 \
        --hicache-storage-backend file --hicache-storage-dir "$work/pages" --hicache-debug-demote "$@"
    cmp -s "$work/alone.jsonl" "$work/many.jsonl" ||
        fail "$ranks ranks, $*: $(cmp "$work/alone.jsonl" "$work/many.jsonl" 2>&1)"
    n=$((n + 1))
}

empty() { rm -rf "$work/pages"; }

# Removes the ends of prefixes, from the sixth page on.  The time of a file is a whole second less one
# millisecond for each page before it in its text.
cut_ends()
{
    find "$work/pages" -name '*.page' -printf '%T@ %p\n' |
        awk '{ if (int((1 - $1 % 1) * 1000 + 0.5) % 1000 >= 5) print $2 }' | xargs rm
}

# Beginnings come from files that the layout before wrote (the same latents, so the same files), ends
# are computed and written.
moves() # moves LAYOUT-OPTION...
{
    cut_ends
    same "$@"
    grep -q '"storage_tokens": [1-9]' "$work/result" || fail "$*: no page came from a file: $(cat "$work/result")"
    grep -q '"written_bytes": [1-9]' "$work/result" || fail "$*: no page was written: $(cat "$work/result")"
}

dpa="--enable-dp-attention"
alone
if [ "$ranks" -eq 2 ]; then
    same --tp 2
    for ep in 1 2; do
        moves --tp 2 --ep $ep
        moves --tp 2 --ep $ep --dp 2 $dpa
    done
    moves --dp 2
    empty
    same --pp 2 # stages have files of their own layers
    moves --pp 2
    for layout in "--tp 2" "--pp 2"; do
        empty
        same $layout --hicache-debug-faults 0.1
        same $layout --hicache-debug-faults 0.1
    done
else
    same --tp 4
    for ep in 1 2 4; do
        moves --tp 4 --ep $ep
        moves --tp 4 --ep $ep --dp 2 $dpa
    done
    moves --tp 4 --ep 4 --dp 4 $dpa
    for ep in 1 2; do moves --tp 2 --ep $ep --dp 2; done
    empty
    same --tp 2 --pp 2
    for ep in 1 2; do
        moves --tp 2 --ep $ep --pp 2
        moves --tp 2 --ep $ep --pp 2 --dp 2 $dpa
    done
    moves --pp 2 --dp 2
    same --tp 2 --pp 2 --dp 2 $dpa --hicache-debug-faults 0.05
fi

# The MTP layer's plane moves along, and drafts change nothing.
model=$here/../../models/fathom-tiny
drafts="--speculative-algorithm NEXTN --disable-speculative-adaptive"
alone
empty
if [ "$ranks" -eq 2 ]; then
    same $drafts --tp 2
    grep -q '"draft_tokens": [1-9]' "$work/result" || fail "nothing was drafted"
    moves $drafts --tp 2
    moves $drafts --tp 2 --dp 2 $dpa
    empty
    same $drafts --pp 2
    moves $drafts --pp 2
else
    same $drafts --tp 2 --pp 2
    moves $drafts --tp 2 --pp 2
fi
echo "$n times $ranks ranks answered from files as one rank does without"
