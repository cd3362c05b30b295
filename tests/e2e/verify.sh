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

# Routing and RoPE that no checkpoint here has by itself, from tools/golden/make_golden.py.
exact() # exact MODEL GOLDEN OVERRIDES
{
    run 0 "$fathom" verify --quiet --model-path "$data/$1" --golden "$data/$1/$2" --dtype float32 \
        --json-model-override-args "$3"
    [ "$(grep -c ' 12/12 *12/12  ok$' "$work/out")" -eq 3 ] || fail "$2: FP32 tokens differ"
}
exact v2lite golden-grouped.json \
    '{"topk_method":"group_limited_greedy","n_group":4,"topk_group":2,"routed_scaling_factor":16.0}'
exact v3 golden-ungrouped.json '{"n_group":1,"topk_group":1,"routed_scaling_factor":2.446,
    "rms_norm_eps":1e-5,"rope_parameters":{"rope_type":"default","rope_theta":50000.0}}'
run 2 "$fathom" verify --quiet --model-path "$data/v3" --golden "$data/v3/golden-ungrouped.json"

# INT4, against a reference that multiplies values and scales out.
run 0 "$fathom" verify --quiet --model-path "$data/v3-int4" --golden "$data/v3-int4/golden.json" \
    --dtype float32
[ "$(grep -c ' 24/24 *24/24  ok$' "$work/out")" -eq 4 ] || fail "INT4: FP32 tokens differ"

# FP8 activations, against a reference that quantises BF16 rows as docs/quantised.md says.
run 0 "$fathom" verify --quiet --model-path "$data/v3wide-fp8" \
    --golden "$data/v3wide-fp8/golden-w8a8.json"

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
