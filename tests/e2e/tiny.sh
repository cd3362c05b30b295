#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom-tiny: equal to transformers, right often enough, and hardly
# less so in BF16 than in FP32 arithmetic.
. "$(dirname "$0")/lib.sh"
model=$here/../../models/fathom-tiny
set=$data/tiny/held_out.jsonl

for dtype in auto float32; do
    run 0 "$fathom" verify --quiet --model-path "$model" --golden "$data/tiny/golden.json" --dtype $dtype
    grep -q "^verdict: pass" "$work/out" || fail "$dtype: no verdict"
done

share() # share TASK COLUMN: of the table in $work/out, without the percent sign
{
    awk -v task="$1" -v column="$2" '$1 == task { print $column + 0 }' "$work/out"
}
at_least() # at_least WHAT SHARE FLOOR
{
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && a >= b) }' || fail "$1: $2 %, want $3 %"
}

run 0 "$fathom" eval --quiet --model-path "$model" --set "$set" --dtype float32 --floor 93
exact=$(share all 4)
run 0 "$fathom" eval --quiet --model-path "$model" --set "$set" --floor 93 --answers "$work/plain"
at_least "two-digit sums right" "$(share add2 4)" 95
at_least "JSON that fits" "$(share json 3)" 90
at_least "tool calls formed" "$(share tool_call 3)" 90
at_least "default arithmetic against FP32" "$(share all 4)" "$(awk -v e="$exact" 'BEGIN { print e - 1 }')"

# Drafts of the MTP layer: the same answers, three steps' work in one.
run 0 "$fathom" eval --quiet --model-path "$model" --set "$set" --answers "$work/drafted" \
    --speculative-algorithm NEXTN --disable-speculative-adaptive
cmp -s "$work/plain" "$work/drafted" || fail "drafts change answers"
awk '/accept length/ { found = $NF >= 3.0 } END { exit !found }' "$work/out" || fail "accept length below 3.0"

# The generators still make the set that is checked in.
if command -v python3 >/dev/null; then
    run 0 python3 "$here/../../tools/eval/make_set.py" "$work/set.jsonl" --per-task 8 --seed 7
    cmp -s "$work/set.jsonl" "$set" || fail "make_set.py makes another set"
fi

# The first command a newcomer types.
run 0 "$fathom" run --quiet --temperature 0 "What is 47 + 85?"
grep -q "47 + 85 = 132" "$work/out" || fail "a sum"

# A set that one token per answer cannot pass, and files that are no sets.
run 1 "$fathom" eval --quiet --model-path "$model" --set "$set" --limit 5 --max-new-tokens 1 --floor 1
for bad in '{"task": "x"' '{"task": 1, "messages": [], "check": {"kind": "text"}}' \
    '{"task": "x", "messages": 5, "check": {"kind": "text"}}' '{"task": "x", "messages": []}' ''; do
    echo "$bad" >"$work/bad.jsonl"
    run 2 "$fathom" eval --quiet --model-path "$model" --set "$work/bad.jsonl"
done
run 2 "$fathom" eval --quiet --model-path "$model" --set "$work/none.jsonl"
run 2 "$fathom" eval --quiet --model-path "$model"
