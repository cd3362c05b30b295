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
