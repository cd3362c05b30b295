#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom ablate: every cell runs, one hash; files; cells that fail or cannot run.
# With a directory as second argument the page is left there for the browser's test.
. "$(dirname "$0")/lib.sh"
cd "$work"
flags="--model-path r1-mini --max-total-tokens 4096 --dataset-name generated-shared-prefix --gsp-num-groups 2
       --gsp-prompts-per-group 3 --gsp-system-prompt-len 40 --gsp-question-len 8 --gsp-output-len 6 --skip-warmup"

run 0 "$fathom" ablate --layouts 1 --features radix,chunked,speculation $flags --json-model-override-args "$small_shape" --markdown a.md --html a.html --json a.json
[ "$(grep -c '^| 1 |' a.md)" -eq 8 ] || fail "2 x 2 x 2 cells"
grep -q "^8 cells ran, 0 failed; all answers are the same bytes.$" a.md || fail "the verdict"
cmp -s a.md "$work/out" || fail "stdout is not the table"
[ "$(grep -o '`[0-9a-f]\{16\}`' a.md | sort -u | wc -l)" -eq 1 ] || fail "more than one hash"
grep -q '"failed": 0' a.json && [ "$(grep -c '"mean_ttft_ms": [0-9.]*[1-9]' a.json)" -eq 8 ] || fail "the JSON file"
grep -q "no GPU" a.md || fail "absent features are not named"
[ "$(grep -c 'class="hash"' a.html)" -eq 8 ] || fail "the page"

# Drafts of the MTP layer, alone and with those of the text; prefixes in files, which need the radix cache.
run 0 "$fathom" ablate --layouts 1 --features radix,speculation,nextn,tiers --level pairs $flags --json-model-override-args "$small_shape" --markdown b.md
grep -q "^10 cells ran, 0 failed; all answers are the same bytes.$" b.md || fail "MTP and files: $(cat b.md)"
[ "$(grep -c '^| 1 | off | .* | off | [0-9]' b.md)" -eq 3 ] || fail "without the radix cache nothing is kept in files"
[ "$(grep -o '`[0-9a-f]\{16\}`' b.md | sort -u | wc -l)" -eq 1 ] || fail "more than one hash with drafts or files"
run 0 "$fathom" ablate --layouts 1 --level singles $flags --model-path v2-lite \
    --json-model-override-args "${small_shape%\}}, \"bos_token_id\": 0, \"eos_token_id\": 1}"
grep -q "nextn (.*; no MTP layer)" "$work/out" || fail "a model without an MTP layer"

# Layouts of two ranks have the same answers; what needs more CPUs than there are is a dash.
run 0 "$fathom" ablate --layouts 1,tp2 --features radix --level singles $flags --json-model-override-args "$small_shape"
if [ "$(nproc)" -ge 2 ]; then grep -q "^4 cells ran, 0 failed; all answers" "$work/out" || fail "two ranks"; fi
run 0 taskset -c "$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')" "$fathom" ablate --layouts 1,tp2 --features radix --level singles $flags --json-model-override-args "$small_shape"
grep -q "^| tp2 | - .*2 ranks need 2 CPUs, there is 1 |$" "$work/out" || fail "one CPU"

# What an earlier run measured is not measured again; a cell that it had no time for, and one with another flag, is.
run 0 "$fathom" ablate --layouts 1 --features radix --wall-time 0.01 $flags --json-model-override-args "$small_shape" --json c.json
grep -q '"state": "skipped"' c.json || fail "no time for any cell"
python3 - a.json c.json <<'END' || fail "an earlier run's file"
import json, sys
a, c = (json.load(open(p)) for p in sys.argv[1:])
first = dict(a["results"][0], command=c["results"][0]["command"], total_throughput=12345.5, radix=True)
json.dump({"results": [first, dict(first, command="fathom bench --other")]}, open("earlier.json", "w"))
END
run 0 "$fathom" ablate --layouts 1 --features radix --continue earlier.json $flags --json-model-override-args "$small_shape"
grep -q "^| 1 | on | 12345.5 |" "$work/out" && grep -q "^| 1 | off | .* \`[0-9a-f]*\` |" "$work/out" || fail "--continue"
[ "$(grep -c tok/s "$work/err")" -eq 1 ] || fail "--continue ran more than the missing cell"
run 2 "$fathom" ablate --layouts 1 --features radix --continue none.json
echo '{"results": 1}' >odd.json
run 2 "$fathom" ablate --layouts 1 --features radix --continue odd.json
grep -q "odd.json is not a file of fathom ablate --json" "$work/err" || fail "another file"

# A cell that fails is a cell, and the command's verdict.
run 1 "$fathom" ablate --layouts 1 --features radix --model-path "$work/none"
grep -q "failed .*exit status 2" "$work/out" && grep -q "2 of 2 cells failed" "$work/err" || fail "failing cells"
run 1 "$fathom" ablate --layouts 1 --features radix --level singles --cell-time-limit 0.01 $flags
grep -q "time limit of 0.01 s" "$work/out" || fail "a time limit"
run 2 "$fathom" ablate --level sideways
run 2 "$fathom" ablate --features radix,wings
grep -q 'features: there is no "wings" among graph, overlap' "$work/err" || fail "a feature that does not exist"
run 2 "$fathom" ablate --layouts 1,tp9
grep -q 'layouts: there is no "tp9" among 1, tp2' "$work/err" || fail "a layout that does not exist"

if [ $# -gt 0 ]; then mkdir -p "$1" && cp a.html "$1/ablation.html"; fi
