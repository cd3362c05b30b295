#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# engine.sh PROGRAM MODEL RANKS: the answers of one rank, byte for byte, from
# every way RANKS ranks can divide the model.  Tokens and log-probabilities,
# with shared prefixes, chunked prompts and preempted sequences.
# MODEL is box (fathom-tiny, on text), dummy, or one of tests/data.
. "$(dirname "$0")/../e2e/lib.sh"
model=$1 ranks=$2 named=$1
mpirun=$here/mpirun.sh
override={} pool=512
export FM_COMM_TIMEOUT=60 FM_THREADS=1

# Questions that begin alike, in an order and of lengths that mix.
write_talks()
{
    rule="You are a careful assistant. Think first, then answer in one short sentence."
    echo "["
    for i in $(seq 12); do
        more=""
        [ $((i % 3)) -ne 0 ] || more=" $rule $rule"
        reply=$(seq -s " and " $((i * 7 % 13 + 6)))
        [ "$i" -eq 1 ] || echo ","
        echo "{\"conversations\": [{\"from\": \"human\", \"value\": \"$rule$more What is $((i * 7)) + 5$i?\"},
               {\"from\": \"gpt\", \"value\": \"$reply\"}]}"
    done
    echo "]"
}

case $model in
box)
    model=$here/../../models/fathom-tiny
    write_talks >"$work/talks.json"
    pool=320
    job="--dataset-name sharegpt --dataset-path $work/talks.json --num-prompts 12"
    ;;
dummy) # nothing divides evenly: 96 channels, 11 blocks of outputs, 1030 words
    model=r1-mini
    override='{"num_hidden_layers": 3, "hidden_size": 352, "intermediate_size": 416, "n_group": 2,
        "moe_intermediate_size": 96, "n_routed_experts": 20, "num_attention_heads": 4,
        "num_key_value_heads": 4, "q_lora_rank": 96, "kv_lora_rank": 128, "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32, "v_head_dim": 64, "vocab_size": 1030, "max_position_embeddings": 512,
        "topk_group": 1, "num_experts_per_tok": 4}'
    ;;
*) model=$data/$model ;;
esac
: "${job:=--dataset-name generated-shared-prefix --gsp-num-groups 3 --gsp-prompts-per-group 4
    --gsp-system-prompt-len 60 --gsp-question-len 25 --gsp-output-len 30 --num-prompts 12}"

# details NAME OPTION...: runs the job, on many ranks if $launch says so; leaves
# $work/NAME.jsonl and a result line
launch=""
details()
{
    name=$1
    shift
    rm -f "$work/result"
    run 0 $launch "$fathom" bench --quiet --skip-warmup --model-path "$model" --json-model-override-args "$override" \
        $job --return-logprob --output-details "$work/$name.jsonl" --result-filename "$work/result" $how "$@"
}

compared=0
same() # same LAYOUT-OPTION...: ranks in that layout answer as one does
{
    case $* in *--pp*) set -- "$@" --context-length $((pool / 2)) ;; esac # two lanes, half the pool each
    details many "$@"
    cmp -s "$work/alone.jsonl" "$work/many.jsonl" ||
        fail "$ranks ranks, $*: $(cmp "$work/alone.jsonl" "$work/many.jsonl" 2>&1)"
    compared=$((compared + 1))
}

every_layout()
{
    each=$1
    dpa="--enable-dp-attention"
    if [ "$ranks" -eq 2 ]; then
        for ep in 1 2; do
            $each --tp 2 --ep $ep
            $each --tp 2 --ep $ep --dp 2 $dpa
        done
        $each --pp 2
        $each --dp 2
        return
    fi
    for ep in 1 2 4; do
        $each --tp 4 --ep $ep
        $each --tp 4 --ep $ep --dp 2 $dpa
    done
    $each --tp 4 --ep 4 --dp 4 $dpa
    for ep in 1 2; do
        $each --tp 2 --ep $ep --pp 2
        $each --tp 2 --ep $ep --pp 2 --dp 2 $dpa
        $each --tp 2 --ep $ep --dp 2
    done
    $each --pp 2 --dp 2
}

# One rank, one request at a time, nothing shared: what the others are held to.
how="--max-running-requests 1 --disable-radix-cache --chunked-prefill-size -1 --page-size 1 --disable-ignore-eos"
details alone

# Small chunks and pages, and a pool that is too small for what is admitted.
how="--page-size 4 --chunked-prefill-size 24 --max-total-tokens $pool --schedule-conservativeness 0 --disable-ignore-eos"
details small
cmp -s "$work/alone.jsonl" "$work/small.jsonl" || fail "one rank does not answer as one rank"
grep -q '"preemptions": [1-9]' "$work/result" || fail "one rank: no request was preempted"
launch="$mpirun $ranks"
every_layout same

# Drafts of the MTP layer change no answer, whichever ranks compute them.
case $named in box | dummy)
    before=$how
    how="$how --speculative-algorithm NEXTN --disable-speculative-adaptive"
    every_layout same
    grep -q '"draft_tokens": [1-9]' "$work/result" || fail "nothing was drafted"
    how=$before
    ;;
esac

# Draws depend on request and position alone, not on the rank that makes them;
# and the prompts' own log-probabilities.
how="$how --logprob-start-len 3"
body='{"temperature":0.8,"top_k":40,"top_p":0.9,"seed":5}'
launch=""
details alone --extra-request-body "$body"
launch="$mpirun $ranks"
same --dp 2 --tp $((ranks / 2)) --extra-request-body "$body"
same --dp 2 --tp "$ranks" --enable-dp-attention --extra-request-body "$body"

# Drawn drafts: of two ranks in every layout, of more where sequences are divided, too.  Every
# layout makes drafts, and the trained model's are accepted.
drafted() # drafted LAYOUT-OPTION...
{
    same "$@" --extra-request-body "$body" --speculative-algorithm NEXTN --disable-speculative-adaptive
    grep -q '"draft_tokens": [1-9]' "$work/result" || fail "$ranks ranks, $*: nothing was drafted"
    [ "$named" != box ] || grep -q '"accepted_draft_tokens": [1-9]' "$work/result" ||
        fail "$ranks ranks, $*: no draft was accepted"
}
case $named:$ranks in
box:2 | dummy:2) every_layout drafted ;;
box:* | dummy:*) drafted --dp 2 --tp "$ranks" --enable-dp-attention ;;
esac

# The comparison can fail: other arithmetic, other bytes.
details other --tp "$ranks" --dtype float32
cmp -s "$work/alone.jsonl" "$work/other.jsonl" && fail "float32 gave the same bytes"
echo "$compared times $ranks ranks answered as one rank does"
