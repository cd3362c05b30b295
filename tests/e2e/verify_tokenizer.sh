#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

tokenizer() { want=$1; shift; run "$want" "$fathom" verify --tokenizer-path "$data/tokenizer" "$@"; }

tokenizer 0 --tokenizer-golden "$data/tokenizer/golden.json"
grep -q "^220 texts: 0 encoded differently, 0 decoded differently$" "$work/out" || fail "goldens"
tokenizer 0 --tokenizer-golden "$data/tokenizer/golden.json" --json
grep -q '"verdict": "pass"}$' "$work/out" || fail "--json"

echo '[{"text": "Hello", "ids": [1, 2], "decoded": "Hello"}]' >"$work/wrong.json"
tokenizer 1 --tokenizer-golden "$work/wrong.json"
grep -q "^verdict: fail$" "$work/out" || fail "wrong ids passed"
for bad in '{' '{}' '[]' '[1]' '[{"text": 1, "ids": []}]' '[{"text": "a", "ids": ["x"]}]' \
    '[{"text": "a", "ids": [-1]}]' '[{"text": "a"}]'; do
    printf '%s' "$bad" >"$work/bad.json"
    tokenizer 2 --tokenizer-golden "$work/bad.json"
    grep -q "bad.json: " "$work/err" || fail "golden file $bad: the file is not named"
done
