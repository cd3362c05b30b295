#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What commands say about speculation: accept length and rate, numbers of a simulated acceptance
# marked as such, and flags of SGLang that take effect, need none, or would change the output.
. "$(dirname "$0")/lib.sh"
box="--model-path $here/../../models/fathom-tiny"
questions="--set $data/tiny/held_out.jsonl --limit 6 --max-new-tokens 24"
job="--num-prompts 4 --dataset-name random --random-input-len 16 --random-output-len 24 --skip-warmup"
fixed="--speculative-algorithm NEXTN --disable-speculative-adaptive"
simulated="--load-format dummy $fixed --speculative-simulate-accept-length 2.5"

# in_json KEY: its number in the last line of $work/result, or nothing
in_json() { sed -n "\$s/.*\"$1\": \([0-9.eE+-]*\).*/\1/p" "$work/result"; }
near() # near WHAT VALUE LOW HIGH
{
    awk -v x="$2" -v a="$3" -v b="$4" 'BEGIN { exit !(x != "" && x >= a && x <= b) }' || fail "$1: $2, not in $3 .. $4"
}
# marked LINE-PATTERN: every such line says that acceptance is simulated
marked()
{
    grep -q "$1" "$work/out" || fail "no line of $1"
    ! grep "$1" "$work/out" | grep -qv "(acceptance simulated)" || fail "unmarked: $1"
}

# --- simulated acceptance is marked at every number that it makes
run 0 "$fathom" eval --quiet $box $simulated $questions
marked "questions in"
marked "accept length"
[ "$(grep -o "tokens/s (acceptance simulated)" "$work/out" | wc -l)" -eq 1 ] || fail "tokens/s unmarked"
run 0 "$fathom" eval --quiet --json $box $simulated $questions
cp "$work/out" "$work/result"
near "simulated_accept_length of eval" "$(in_json simulated_accept_length)" 2.5 2.5
run 0 "$fathom" bench --quiet $box $simulated $job --result-filename "$work/result"
for row in "Benchmark duration" "throughput" "Accept length" "Accept rate"; do marked "$row"; done
near "simulated_accept_length of bench" "$(in_json simulated_accept_length)" 2.5 2.5
run 0 "$fathom" bench --quiet $box $simulated --batch-size 2 --input-len 16 --output-len 24
marked "accept length"

# --- a verdict about tokens is not given where drafts are accepted unseen
run 2 "$fathom" verify $box $simulated --golden "$data/v3/golden.json"
grep -q "simulate-accept-length is for fathom bench" "$work/err" || fail "tokens of simulated drafts are verified"

# --- and nothing is where drafts are verified
run 0 "$fathom" eval --quiet $box $fixed $questions
! grep -q simulated "$work/out" || fail "verified drafts are marked as simulated"

# --- accept rate: drafts accepted of those verified
run 0 "$fathom" bench --quiet $box $fixed $job --result-filename "$work/result"
grep -q "^Accept rate: *[0-9.]*[0-9] *$" "$work/out" || fail "no accept rate in the table"
drafts=$(in_json draft_tokens) accepted=$(in_json accepted_draft_tokens)
near "spec_accept_rate" "$(in_json spec_accept_rate)" "$(awk "BEGIN { print $accepted / $drafts - 1e-4 }")" \
    "$(awk "BEGIN { print $accepted / $drafts + 1e-4 }")"
run 0 "$fathom" bench --quiet $box $job
! grep -q "^Accept" "$work/out" || fail "acceptance without drafts"

# --- how many drafts: steps decide, draft tokens count the row of the sequence's own token as well
drafted() # drafted FLAG...: drafts that a step of one sequence verifies at most
{
    run 0 "$fathom" bench --quiet $box $fixed $job --num-prompts 1 --result-filename "$work/result" "$@"
    in_json draft_tokens
}
three=$(drafted) five=$(drafted --speculative-num-steps 5)
[ "$three" -gt 0 ] && [ "$three" -ne "$five" ] || fail "$three drafts in chains of 3, $five of 5"
[ "$(drafted --speculative-num-draft-tokens 6)" -eq "$five" ] || fail "six rows are not five drafts"
[ "$(drafted --speculative-num-steps 5 --speculative-num-draft-tokens 6)" -eq "$five" ] || fail "five steps of six rows"
! grep -q "the steps decide" "$work/err" || fail "six rows contradict five steps"
[ "$(drafted --speculative-num-steps 5 --speculative-num-draft-tokens 2)" -eq "$five" ] || fail "steps do not decide"
grep -q "the steps decide: 5 drafts" "$work/err" || fail "nothing is said of a contradiction"
[ "$(drafted --speculative-num-draft-tokens 1)" -eq 0 ] || fail "one row, and drafts"
grep -q "there are no drafts" "$work/err" || fail "nothing is said of one row"
! grep -q "^Accept" "$work/out" || fail "acceptance without drafts"

# --- SGLang's other flags: an effect, a note, or a refusal
copied="--speculative-algorithm NGRAM --disable-speculative-adaptive --speculative-ngram-min-match-window-size 1"
run 2 "$fathom" bench $box $job $copied --speculative-ngram-max-trie-depth 1
grep -q "max-trie-depth 1: " "$work/err" || fail "a trie of matches without drafts"
run 0 "$fathom" bench $box $job $copied --speculative-ngram-max-trie-depth 18 --speculative-ngram-capacity 10000000 \
    --speculative-ngram-match-type BFS --speculative-ngram-min-bfs-breadth 1 --speculative-ngram-max-bfs-breadth 10 \
    --speculative-use-rejection-sampling --speculative-draft-attention-backend flashinfer \
    --speculative-draft-kv-cache-dtype bfloat16 --speculative-draft-model-path nextn --speculative-token-map map.pt \
    --speculative-accept-threshold-single 1.0 --speculative-accept-threshold-acc 1.0
for flag in ngram-capacity ngram-match-type ngram-min-bfs-breadth ngram-max-bfs-breadth use-rejection-sampling \
    draft-attention-backend draft-kv-cache-dtype draft-model-path token-map accept-threshold-single; do
    grep -q "^fathom bench: --speculative-$flag.*: " "$work/err" || fail "nothing is said of --speculative-$flag"
done
for flag in single acc; do
    run 2 "$fathom" bench $box $job $fixed --speculative-accept-threshold-$flag 0.9
    grep -q "threshold-$flag 0.9 is not supported: .*changes the output" "$work/err" || fail "threshold-$flag below 1"
done

# --- drafts of an MTP layer in FP8 change no answer of a model in FP8
run 0 "$fathom" convert --quantize fp8 "$here/../../models/fathom-tiny" "$work/fp8"
ask8="$fathom eval --quiet --model-path $work/fp8 --set $data/tiny/held_out.jsonl --limit 60 --max-new-tokens 64"
run 0 $ask8 --answers "$work/plain"
for kind in NEXTN NEXTN,NGRAM; do
    run 0 $ask8 --answers "$work/drafted" --speculative-algorithm $kind --disable-speculative-adaptive
    cmp -s "$work/plain" "$work/drafted" || fail "FP8: drafts of $kind change answers"
    awk '/accept length/ { found = $NF >= 2.5 } END { exit !found }' "$work/out" || fail "FP8: accept length of $kind below 2.5"
done
