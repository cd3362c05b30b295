#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The three golden checkpoints in both arithmetics, at the level of FM_ISA.
. "$(dirname "$0")/lib.sh"
need_isa

for model in v3 v2lite v3wide-fp8; do
    golden=$data/$model/golden.json
    for dtype in auto float32; do
        run 0 "$fathom" verify --quiet --model-path "$data/$model" --golden "$golden" --dtype $dtype
        grep -q "^verdict: pass" "$work/out" || fail "$model $dtype: no verdict"
        [ "$dtype" = auto ] || [ "$(grep -c ' 24/24 *24/24  ok$' "$work/out")" -eq 5 ] ||
            fail "$model: FP32 tokens differ"
    done
done

# A wrong answer is seen: one golden token changed, one logit changed.
sed 's/"greedy": *\[\([0-9]*\)/"greedy": [5\1/' "$data/v2lite/golden.json" |
    sed 's/\[5\([0-9]\)[0-9]*/[5\1/' >"$work/token.json"
run 1 "$fathom" verify --quiet --model-path "$data/v2lite" --golden "$work/token.json" --dtype float32
grep -q "^verdict: fail" "$work/out" || fail "a wrong token passed"
sed 's/"logits_first": *\[\([-0-9.]*\)/"logits_first": [9\1/; s/\[9-/[-9/' "$data/v2lite/golden.json" \
    >"$work/logit.json"
run 1 "$fathom" verify --quiet --model-path "$data/v2lite" --golden "$work/logit.json" --dtype float32
run 1 "$fathom" verify --quiet --model-path "$data/v2lite" --golden "$data/v3/golden.json"
run 0 "$fathom" verify --quiet --model-path "$data/v3" --golden "$data/v3/golden.json" --json
grep -q '"verdict": "pass"}$' "$work/out" || fail "--json"
