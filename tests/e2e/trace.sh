#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trace.sh PROGRAM: a run records itself, and fathom trace explains it in every form.
. "$(dirname "$0")/lib.sh"
cd "$work"
small="--model-path r1-mini --json-model-override-args"
load="--dataset-name random-ids --random-input-len 64 --random-output-len 16 --random-range-ratio 1 --num-prompts 8 --skip-warmup --quiet"

# --trace: the report has a verdict, the tables, a timeline
# shellcheck disable=SC2086
run 0 "$fathom" bench $small "$small_shape" $load --trace first
run 0 "$fathom" trace first
for what in '% of the time: ' '^The largest single win: \|^No single win' '^Limits are ' '^experts (moe) ' '^linear out (dense) ' '^run  ' '^decode  ' \
    '^rank 0   |' '^request  |'; do
    grep -q "$what" out || fail "no \"$what\" in the report"
done
! grep -q "Note: " out || fail "a complete trace has reservations"
[ "$(stat -c %s first)" -lt 4000000 ] || fail "a short run leaves a short file: $(stat -c %s first) bytes"

# sums hold what was computed: 8 requests of 64 tokens, 16 tokens each
run 0 "$fathom" trace first --json
grep -q '"ranks_of_job": 1' out || fail "no ranks in JSON"
if command -v python3 >/dev/null; then
    python3 - <<'END' || fail "the JSON contradicts itself"
import json
t = json.load(open("out"))
key = {(k["class"], k["name"], k["part"]): k for k in t["keys"]}
queued, decode = key["task", "queued", ""], key["task", "decode", ""]
assert queued["count"] == decode["count"] == 8 and queued["rows"] == 8 * 64 and decode["rows"] == 8 * 16, (queued, decode)
assert key["op", "head", ""]["rows"] == 8 * 16, key["op", "head", ""]
steps = sum(k["count"] for (c, _, _), k in key.items() if c == "step")
assert key["phase", "run", ""]["count"] == steps == key["op", "embed", ""]["count"]
a = t["all"]
parts = sum(v for k, v in a.items() if k != "wall_s")
assert abs(parts - a["wall_s"]) < 0.05 * a["wall_s"] + 0.01, a
END
fi

# held against a machine that reads 12 GB/s and does 1 TFLOP/s
cat >rates.json <<'END'
{"rates_version": 1, "rank": [{"host": "x", "read": {"median": 1.2e10, "spread": 0, "best": 1.2e10, "repeats": 1},
 "product": {"bf16": {"median": 1e12, "spread": 0, "best": 1e12, "repeats": 1}}}]}
END
run 0 "$fathom" trace first --rates rates.json
grep -Eq "% of its bandwidth|% of the machine's limit" out || fail "no limits in the verdict"
grep -Eq "^experts .* [0-9]+ (memory|peak)$" out || fail "no limits in the table"
grep -q "^Limits are known: fathom doctor measured them on x, " out || fail "the verdict does not say whose limits"
run 2 "$fathom" trace first --rates first

# without --rates: what fathom doctor kept here, if it is of this host
mkdir -p cache/fathom
export XDG_CACHE_HOME="$work/cache"
run 0 "$fathom" trace first
grep -q "^Limits are not known: " out || fail "limits out of nowhere"
cp rates.json cache/fathom/rates.json
run 0 "$fathom" trace first
grep -q "^Limits are not known: " out || fail "limits of another host"
sed "s/\"host\": \"x\"/\"host\": \"$(uname -n)\"/" rates.json >cache/fathom/rates.json
run 0 "$fathom" trace first
grep -q "^Limits are known: " out || fail "limits of this host are not found"
run 0 "$fathom" trace first --rates none
grep -q "^Limits are not known: " out || fail "--rates none"

# files for other programs, and two runs compared
run 0 "$fathom" trace first --perfetto spans.json --html page.html
grep -q '"ph":"X"' spans.json || fail "no spans for Perfetto"
grep -q 'const DATA = {' page.html || fail "no data in the page"
# shellcheck disable=SC2086
run 0 "$fathom" bench $small "$small_shape" $load --profile --profile-filename-prefix second
grep -q "Where the time went" out || fail "bench --profile does not say"
# shellcheck disable=SC2086
run 0 "$fathom" bench $small "$small_shape" --quiet --batch-size 2 --input-len 16 --output-len 4 --profile
grep -q "Where the time went (fathom trace profile.trace has more)" out || fail "nor with --batch-size"
run 0 "$fathom" trace --compare first second.trace
grep -q "a second and rank before" out || fail "nothing compared"
grep -q "^step  *prefill  " out || fail "no step in the comparison"
grep -q "^request  *prefill  " out || fail "no stage of requests in the comparison"
run 0 "$fathom" trace --compare first second.trace --json
grep -q '"changes": \[' out || fail "--compare --json prints no JSON"
run 2 "$fathom" trace --compare first second.trace --html page2.html
grep -q "fathom trace: --compare prints a table or --json; --html shows one trace alone" err || fail "--compare --html is not refused"
run 2 "$fathom" trace --compare first second.trace --perfetto spans2.json
[ ! -e page2.html ] && [ ! -e spans2.json ] || fail "--compare wrote a file it had refused"

# what cannot be
run 2 "$fathom" trace
run 2 "$fathom" trace nowhere
grep -q "nowhere: No such file" err || fail "no sentence about a missing file"
run 2 "$fathom" trace "$here/trace.sh"
grep -q "is no trace" err || fail "no sentence about another file"
head -c 5000 first >short
run 2 "$fathom" trace short
run 2 "$fathom" trace --compare first
# shellcheck disable=SC2086
run 2 "$fathom" bench $small "$small_shape" $load --trace /nowhere/x
grep -q "/nowhere/x: No such file or directory" err || fail "no sentence about a trace that cannot be written"

# the second engine records itself, too
run 0 "$fathom" scf --quiet --trace chem "$data/chem/nwchem/h2.nw"
run 0 "$fathom" trace chem
grep -q "^two-electron integrals  " out || fail "no integrals in the trace of scf"
grep -q "^iteration  " out || fail "no iterations in the trace of scf"
