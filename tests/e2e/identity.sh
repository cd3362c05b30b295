#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same bytes whatever the scheduler, the cache and the threads do: tokens
# and log-probabilities of every request, alone and in a batch.
#     identity.sh PROGRAM MODEL      a checkpoint of tests/data, or "dummy"
# FM_TEST_BRIEF, for a program that is slow: one value of each option.
. "$(dirname "$0")/lib.sh"
need_lower_isa

case $1 in
dummy) model="--model-path r1-mini" override=$small_shape ;;
*) model="--model-path $data/$1" override={} ;;
esac

# details NAME OPTION...: runs the job, leaves $work/NAME.jsonl and its result line
details()
{
    name=$1
    shift
    rm -f "$work/result"
    run 0 "$fathom" bench --quiet --skip-warmup $model --json-model-override-args "$override" $job \
        --return-logprob --output-details "$work/$name.jsonl" --result-filename "$work/result" "$@"
}

same() # same NAME OPTION...
{
    details "$@"
    cmp -s "$work/alone.jsonl" "$work/$1.jsonl" ||
        fail "$job: $* differs from alone: $(cmp "$work/alone.jsonl" "$work/$1.jsonl" 2>&1)"
}

chunks="1 7 64 -1" pages="1 16 64" threads="1 2"
[ -z "${FM_TEST_BRIEF:-}" ] || chunks=7 pages=16 threads=2

alone="--max-running-requests 1 --disable-radix-cache --chunked-prefill-size -1 --page-size 1 --threads 1"

job="--dataset-name random --random-input-len 150 --random-output-len 24 --num-prompts 12"
details alone $alone
same batched
same batched_warm --deterministic
for chunk in $chunks; do same chunk$chunk --chunked-prefill-size $chunk; done
for page in $pages; do
    same page$page --page-size $page
    same page${page}_chunk13 --page-size $page --chunked-prefill-size 13
done
same no_radix --disable-radix-cache
same lpm --schedule-policy lpm
for n in $threads; do same threads$n --threads "$n"; done
same few --max-running-requests 3

# The comparison can fail: other arithmetic, other bytes.
details other --dtype float32
cmp -s "$work/alone.jsonl" "$work/other.jsonl" && fail "float32 gave the same bytes"

# Answers that outgrow the pool: sequences are put back and computed again.
preempted() { same "$@"; grep -q '"preemptions": [1-9]' "$work/result" || fail "$1: no request was preempted"; }
small_pool="--max-total-tokens 256 --schedule-conservativeness 0 --disable-ignore-eos"
job="--dataset-name random --random-input-len 20 --random-output-len 100 --num-prompts 12"
details alone $alone --disable-ignore-eos
preempted preempted1 $small_pool --page-size 1
preempted preempted4 $small_pool --page-size 4 --chunked-prefill-size 7
preempted preempted16 $small_pool --page-size 16 --disable-radix-cache
preempted preempted_det $small_pool --page-size 4 --deterministic --schedule-policy lpm

# Shared prefixes: what others computed is reused.
job="--dataset-name generated-shared-prefix --gsp-num-groups 3 --gsp-prompts-per-group 4
     --gsp-system-prompt-len 100 --gsp-question-len 9 --gsp-output-len 12 --num-prompts 12"
details alone $alone
for page in $pages; do
    same shared$page --page-size $page
    same shared_late$page --page-size $page --max-running-requests 2
    grep -q '"cache_hit_rate": 0.0,' "$work/result" && fail "page size $page: no prefix was reused"
done
same shared_lpm --schedule-policy lpm --chunked-prefill-size 32
same shared_evicted --max-total-tokens 192 --page-size 4 --schedule-conservativeness 0

# Random draws depend on request, seed and position alone.
job="--dataset-name random --random-input-len 60 --random-output-len 24 --num-prompts 8"
body='{"temperature": 0.8, "top_p": 0.9, "top_k": 40, "seed": 5, "frequency_penalty": 0.3}'
details alone $alone --extra-request-body "$body"
same drawn --extra-request-body "$body"
same drawn_chunks --extra-request-body "$body" --chunked-prefill-size 7 --threads 2
same drawn_small_pool --extra-request-body "$body" --max-total-tokens 128 --page-size 4 \
    --schedule-conservativeness 0

# The prompts' own log-probabilities.
job="--dataset-name random --random-input-len 300 --random-output-len 6 --num-prompts 8 --logprob-start-len 5"
details alone $alone
grep -q '"input_logprobs": \[-' "$work/alone.jsonl" || fail "no log-probabilities of the prompts"
same scored
same scored_chunk7 --chunked-prefill-size 7
same scored_page4 --page-size 4 --schedule-policy lpm --threads 1
same scored_few --max-running-requests 2
job="--dataset-name random --random-input-len 20 --random-output-len 100 --num-prompts 12 --logprob-start-len 0"
details alone $alone --disable-ignore-eos
preempted scored_preempted $small_pool --page-size 4 --chunked-prefill-size 7
