#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The real server, seen by the online benchmark, the Grafana dashboard and the
# page: the same tokens as offline, every plotted name exported, a page that works.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || { echo "no python3"; exit 77; }

server=
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
model="--model-path r1-mini --load-format dummy --tokenizer-path $data/tokenizer --max-total-tokens 32768"
job="--quiet --dataset-name random --random-input-len 40 --random-output-len 24 --num-prompts 48"

: >"$work/serve" # there before the server is
"$fathom" serve --quiet $model --json-model-override-args "$small_shape" --port 0 >"$work/serve" 2>&1 &
server=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$work/serve")
    [ -n "$url" ] && break
    sleep 0.5
done
[ -n "$url" ] || fail "the server did not start: $(cat "$work/serve")"

# Every wire format answers; /generate with the ids of the offline run, bit for bit.
run 0 "$fathom" bench $model --json-model-override-args "$small_shape" $job --output-details "$work/offline"
for backend in sglang sglang-oai sglang-oai-chat; do
    run 0 "$fathom" bench --base-url "$url" --tokenizer-path "$data/tokenizer" $job --backend $backend \
        --max-concurrency 24 --output-details "$work/$backend"
    grep -q "^Successful requests: *48 " "$work/out" || fail "$backend"
done
python3 - "$work/offline" "$work/sglang" <<'P' || fail "online and offline differ"
import json, sys
offline, online = ([json.loads(l) for l in open(f)] for f in sys.argv[1:])
assert len(offline) == len(online) == 48
for a, b in zip(offline, online):
    assert (a["prompt_ids"], a["output_ids"]) == (b["prompt_ids"], b["output_ids"]), a["index"]
P

# What the dashboard plots is exported.
python3 - "$url" "$here/../../contrib/grafana/fathom.json" <<'P' || fail "the dashboard plots what is not there"
import json, re, sys, urllib.request
exported = set(re.findall(r"^(fathom:\w+)", urllib.request.urlopen(sys.argv[1] + "/metrics").read().decode(), re.M))
board = open(sys.argv[2]).read()
json.loads(board)
plotted = set(re.findall(r"fathom:\w+", board))
assert len(plotted) > 10 and plotted <= exported, sorted(plotted - exported)
P

# The page the server carries, in a browser.
got=0
python3 "$here/../page/test_page.py" --url "$url" ${1:+--shots "$1"} >"$work/out" 2>&1 || got=$?
[ "$got" -eq 0 ] || [ "$got" -eq 77 ] || fail "the page"
kill $server
wait $server || fail "the server did not end well"
server=
