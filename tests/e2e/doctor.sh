#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom doctor: alone, with a model, as several ranks; what it prints, writes and returns.  Rates
# are not judged here: the machine is busy with other tests.
. "$(dirname "$0")/lib.sh"
quick="--seconds 0.5 --threads 1 --no-gpu"
export XDG_CACHE_HOME="$work/cache"

# One rank: there is none to compare with; the rates go to the cache.
run 0 "$fathom" doctor $quick
grep -q "^1 rank on 1 host" "$work/out" || fail "no table"
grep -q "^verdict: nothing is wrong" "$work/out" || fail "no verdict"
python3 - "$work/cache/fathom/rates.json" <<'EOF' || fail "the file of rates"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["rates_version"] == 1 and len(r["rank"]) == 1 and "link" not in r
rank = r["rank"][0]
assert rank["read"]["median"] > 1e8 and rank["read"]["repeats"] == 5
assert rank["product"]["f64"]["median"] > 1e8 and rank["n_thread"] == 1
EOF

# JSON, a directory to read, a file of rates elsewhere.
mkdir "$work/files"
dd if=/dev/zero of="$work/files/big" bs=1M count=8 2>/dev/null
run 0 "$fathom" doctor $quick --json --directory "$work/files" --rates "$work/here.json"
python3 - "$work/out" "$work/here.json" <<'EOF' || fail "the JSON"
import json, sys
d, r = (json.load(open(f)) for f in sys.argv[1:])
assert d["verdict"] == "fine" and d["exclude"] == [] and len(d["hosts"]) == 1
assert d["rates"]["rank"] == r["rank"] and r["rank"][0]["file"]["median"] > 0
EOF

# Against rates of another day: a hundred times as good, and of no such file.
python3 - "$work/here.json" <<'EOF'
import json, sys
r = json.load(open(sys.argv[1]))
for rate in [r["rank"][0]["read"], *r["rank"][0]["product"].values()]:
    for key in ("median", "best"): rate[key] *= 100
    rate["spread"] = 0
json.dump(r, open(sys.argv[1], "w"))
EOF
run 1 "$fathom" doctor $quick --rates none --against "$work/here.json"
grep -q "^FAULT .* below what was measured before" "$work/out" || fail "it has not become slower"
run 2 "$fathom" doctor $quick --rates none --against "$work/nowhere.json"

# A model: fits, loads, or not.
run 0 "$fathom" doctor $quick --rates none --model-path "$here/../../models/fathom-tiny"
grep -q "^model .* fits:" "$work/out" || fail "no plan"
grep -q "^loading takes about" "$work/out" || fail "no time to load"
run 2 "$fathom" doctor $quick --rates none --model-path r1
grep -q "^model: does not load here: " "$work/out" || fail "R1 fits"
run 2 "$fathom" doctor $quick --rates none --json --model-path "$work/nowhere"
grep -q '"fits": false' "$work/out" || fail "a model that is nowhere"

# What cannot be.
run 2 "$fathom" doctor $quick --rates "$work/no/such/folder/x.json"
run 2 "$fathom" doctor --seconds -1
run 0 "$fathom" doctor $quick --rates none --directory "$work/empty"
grep -q "files were not read: .*No such file" "$work/out" || fail "a directory that is not there"

# Two ranks: links, one verdict, one status (1 where the machine was too busy).
command -v mpirun >/dev/null || exit 0
got=0
timeout 120 "$here/../rank/mpirun.sh" 2 "$fathom" doctor $quick --rates "$work/two.json" >"$work/out" 2>"$work/err" || got=$?
[ "$got" -le 1 ] || fail "exit $got"
[ "$(grep -c '^verdict: ' "$work/out")" -eq 1 ] || fail "not one verdict"
grep -q "^links within hosts" "$work/out" || fail "no links"
python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
l = r["link"]["latency"]
assert len(r["rank"]) == 2 and l[0][1] > 0 and l[1][0] > 0 and l[0][0] == 0
assert r["near"]["bandwidth"]["median"] > 1e6 and r["all_to_all"]["median"] > 0' "$work/two.json" || fail "links in the file"
