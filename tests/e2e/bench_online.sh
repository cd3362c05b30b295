#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom bench --base-url against a server with known delays: counts exact,
# times within what a busy machine allows.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || { echo "no python3"; exit 77; }

server=
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
serve() # serve OPTION...: a fresh mock server; sets $url
{
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    : >"$work/port"
    python3 "$here/../mock/server.py" "$@" >"$work/port" &
    server=$!
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ -s "$work/port" ] && break
        sleep 0.2
    done
    url=http://127.0.0.1:$(cat "$work/port")
}

row() { sed -n "s/^$1 *\([0-9.a-z-]*\) *$/\1/p" "$work/out"; }
between() # between ROW LOW HIGH
{
    row "$1" | awk -v lo="$2" -v hi="$3" '{ ok = $1 >= lo && $1 <= hi } END { exit !ok }' ||
        fail "$1 $(row "$1"), want $2 to $3"
}
is() { [ "$(row "$1")" = "$2" ] || fail "$1 $(row "$1"), want $2"; }
logged() { python3 -c "import json, urllib.request as u; log = json.load(u.urlopen('$url/mock/log')); print($1)"; }

random="--quiet --dataset-name random --random-input-len 32 --random-output-len 25 --random-range-ratio 1"
bench() { want=$1; shift; run "$want" "$fathom" bench --base-url "$url" $random "$@"; }

# The three ways to ask: 50 ms to the first token, then 10 ms each.
serve --ttft 0.05 --itl 0.01
for backend in sglang sglang-oai sglang-oai-chat; do
    bench 0 --backend $backend --num-prompts 12 --max-concurrency 4 --tokenizer-path "$data/tokenizer" \
        --output-file "$work/o.jsonl" --output-details "$work/d.jsonl"
    is "Backend:" $backend
    is "Successful requests:" 12
    is "Total input tokens:" 384
    is "Total generated tokens:" 300
    is "Max request concurrency:" 4
    between "Mean TTFT (ms):" 49 250
    between "Median ITL (ms):" 8 20
    between "Median TPOT (ms):" 9 20
    between "Median E2E Latency (ms):" 285 600
    between "Benchmark duration (s):" 0.87 3
    between "Concurrency:" 3 4.01
    [ "$(wc -l <"$work/d.jsonl")" -eq 12 ] || fail "one line per request"
done
[ "$(wc -l <"$work/o.jsonl")" -eq 3 ] || fail "one JSON line per run"
python3 - "$work/o.jsonl" "$work/d.jsonl" <<'P' || fail "the JSON lines"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
for l in lines:
    for name in ("e2e_latency", "ttft", "tpot", "itl"):
        for what in ("mean", "median", "std", "p90", "p95", "p99"):
            assert isinstance(l[f"{what}_{name}_ms"], float), (what, name)
    for key in ("duration", "completed", "total_input_tokens", "total_output_tokens", "total_output_tokens_retokenized",
                "request_throughput", "input_throughput", "output_throughput", "total_throughput", "concurrency",
                "max_output_tokens_per_s", "max_concurrent_requests", "server_info", "request_rate", "dataset_name"):
        assert l[key] is not None, key
    assert l["accept_length"] is None and l["spec_accept_rate"] is None and l["model"] == "mock-tiny" and l["completed"] == 12
for i, l in enumerate(json.loads(l) for l in open(sys.argv[2])):
    assert l["index"] == i and l["output_len"] == 25 and len(l["itl"]) == 24 and l["error"] is None
    assert l["text"].split() == [f"w{k}" for k in range(25)]
P
# warm-up and run of three backends, never more than four at once, whole prompts
[ "$(logged 'sum(e["end"] == "done" for e in log)')" = 39 ] || fail "requests: $(logged 'len(log)')"
[ "$(logged '{len(e["body"]["input_ids"]) for e in log if e["path"] == "/generate"}')" = "{32}" ] || fail "prompts"

# What was cached: of the half that the mock says it had, a half lay in files.
for backend in sglang sglang-oai; do
    bench 0 --backend $backend --num-prompts 4 --tokenizer-path "$data/tokenizer" --cache-report --output-file "$work/c.jsonl"
    is "Total prompt tokens:" 128
    is "Total cached tokens:" 64
    grep -q "^Cache hit rate: *50.0%$" "$work/out" || fail "--cache-report, $backend"
    case $backend in
    sglang) is "  Storage:" 32 ;;
    *) ! grep -q "^  Storage:" "$work/out" || fail "$backend does not say where" ;;
    esac
done
bench 0 --backend sglang-oai-chat --num-prompts 4 --tokenizer-path "$data/tokenizer" --cache-report
between "Total cached tokens:" 1 64 # the mock counts words
python3 - "$work/c.jsonl" <<'P' || fail "cache_report"
import json, sys
native, oai = (json.loads(l)["cache_report"] for l in open(sys.argv[1]))
assert native == {"total_prompt_tokens": 128, "total_cached_tokens": 64, "cache_hit_rate_pct": 50.0, "device_cached_tokens": 32,
                  "host_cached_tokens": 0, "storage_cached_tokens": 32}
assert oai["total_cached_tokens"] == 64 and oai["device_cached_tokens"] is None
P

# Several tokens per event: each gap is shared.
serve --ttft 0.02 --itl 0.01 --per-event 5 --accept-length 2.5 --accept-rate 0.5
bench 0 --num-prompts 4 --disable-ignore-eos --flush-cache --api-key sesame
between "Median ITL (ms):" 8 20
is "Total generated tokens:" 100
is "Accept length:" 2.50
is "Accept rate:" 0.50
grep -q "(retokenized): *n/a" "$work/out" || fail "there is no tokenizer to count with"
[ "$(logged '[e["path"] for e in log]' | grep -c flush_cache)" -eq 1 ] || fail "--flush-cache"
[ "$(logged 'log[0]["key"], log[0]["body"]["sampling_params"]["ignore_eos"]')" = "Bearer sesame False" ] || fail "what was sent"

# Poisson arrivals: the running sum of NumPy's gaps for seed 7.
bench 0 --num-prompts 12 --request-rate 40 --seed 7 --output-details "$work/d.jsonl" --disable-stream
is "Traffic request rate:" 40.0
python3 - "$work/d.jsonl" <<'P' || fail "arrival times"
import json, sys
sent = [json.loads(l)["sent"] for l in open(sys.argv[1])]
want = [0.0, 0.0019844, 0.0398284, 0.0542529, 0.0863884, 0.1817943, 0.2011259, 0.2185107, 0.2203801, 0.2281945,
        0.2455173, 0.2739431]
assert sent == sorted(sent)
for s, w in zip(sent, want):
    assert w - 0.001 <= s <= w + 0.1, (s, w)
P
between "Mean TTFT (ms):" 255 600 # whole answers: the first text is the last

# The same through TLS; a certificate that no trusted CA signed is refused.
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=mock -addext "subjectAltName=IP:127.0.0.1" \
        -keyout "$work/key" -out "$work/cert" 2>/dev/null || fail "openssl"
    cat "$work/cert" "$work/key" >"$work/pem"
    serve --ttft 0.02 --itl 0.005 --tls "$work/pem"
    url=https${url#http}
    SSL_CERT_FILE=$work/cert bench 0 --num-prompts 24 --max-concurrency 8
    is "Successful requests:" 24
    is "Total generated tokens:" 600
    bench 2 --num-prompts 1
    grep -q "no certificate that is trusted" "$work/err" || fail "an unknown certificate was taken"
fi

# The address as OpenAI's clients have it; prompts that the context cuts are counted.
serve --ttft 0.01 --itl 0.001
for end in /v1 /v1/ /; do
    run 0 "$fathom" bench --base-url "$url$end" $random --num-prompts 2
    is "Successful requests:" 2
done
run 0 "$fathom" bench --base-url "$url" --dataset-name random --random-input-len 9000 --random-output-len 25 \
    --random-range-ratio 1 --num-prompts 2
grep -q "^Requests cut to the context: *2 (8192 tokens)$" "$work/out" || fail "not a word of what was cut"

# Only a regular file is replaced, and what cannot be written costs no result.
echo old >"$work/target"
ln -s target "$work/link"
ln -s /dev/full "$work/full"
bench 2 --num-prompts 2 --output-details "$work/link" --output-file "$work/full"
[ -L "$work/link" ] && [ "$(wc -l <"$work/target")" -eq 2 ] || fail "details through a link"
is "Successful requests:" 2
grep -q "^fathom bench: --output-file .*full: No space left on device$" "$work/err" || fail "no word of the full disk"

# Failures are counted and explained; when more fail than succeed, so does the run.
serve --ttft 0.01 --itl 0.001 --fail-every 5
bench 0 --num-prompts 9 --warmup-requests 0
is "Successful requests:" 8
is "Failed requests:" 1
grep -q "1 of 9 requests failed.*status 503: the queue is full" "$work/err" || fail "the reason"
# --flush-cache is the mock's first request, so that the second and the fourth fail: two of three, two of four.
for n in 3 4; do
    serve --ttft 0.01 --itl 0.001 --fail-every 2
    bench $((4 - n)) --num-prompts $n --warmup-requests 0 --flush-cache --max-concurrency 1
    is "Failed requests:" 2
done
serve --fail-every 1
bench 1 --num-prompts 3
grep -q "warm-up request failed: status 503" "$work/err" || fail "warm-up"
bench 1 --num-prompts 3 --warmup-requests 0
grep -q "no request succeeded" "$work/err" || fail "none succeeded"

# A server that is not there, and words that make no sense.
kill $server
bench 2 --num-prompts 1
grep -q "$url: no answer from the server: no connection" "$work/err" || fail "no server"
url=ftp://127.0.0.1:1
bench 2
grep -q "not ftp://" "$work/err" || fail "another protocol"
url=elsewhere
bench 2
grep -q "is no address like" "$work/err" || fail "address"
url=http://127.0.0.1:1
for words in "--request-rate 0" "--request-rate often" "--backend trt" "--header x" "--max-concurrency -1"; do
    bench 2 $words
done
for backend in sglang sglang-oai vllm; do # whose command lines need no --base-url
    run 2 "$fathom" bench --backend $backend
    grep -q "say which with --base-url" "$work/err" || fail "--backend $backend without a server"
done
