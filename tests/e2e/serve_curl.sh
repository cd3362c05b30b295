#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom serve as curl sees it, and the command line of the server.
. "$(dirname "$0")/lib.sh"
command -v curl >/dev/null || { echo "no curl"; exit 77; }

run 2 "$fathom" serve --model-path r1-mini --reasoning-parser nonsense
grep -q -- "--reasoning-parser nonsense is none of auto, none, deepseek-r1, " "$work/err" || fail "an unknown parser"
run 2 "$fathom" serve --model-path r1-mini --ssl-certfile "$work/none.pem"
grep -q "^fathom serve: certificate $work/none.pem: No such file or directory$" "$work/err" || fail "no certificate"
if command -v openssl >/dev/null; then # what a file lacks is said in words, not in codes of OpenSSL
    for name in a b; do
        run 0 openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout "$work/$name.key" -out "$work/$name.pem"
    done
    run 0 openssl rsa -in "$work/a.key" -aes128 -passout pass:x -out "$work/locked.key"
    refused() { words=$1; shift; run 2 "$fathom" serve --model-path r1-mini "$@"; grep -q "$words" "$work/err" || fail "\"$words\": $*"; }
    refused "a.pem: its private key is not in this file.*--ssl-keyfile" --ssl-certfile "$work/a.pem"
    refused "a.key: there is no certificate in PEM form" --ssl-certfile "$work/a.key"
    refused "none.key: No such file" --ssl-certfile "$work/a.pem" --ssl-keyfile "$work/none.key"
    refused "a.pem: there is no private key in PEM form" --ssl-certfile "$work/a.pem" --ssl-keyfile "$work/a.pem"
    refused "locked.key: .*without a pass phrase" --ssl-certfile "$work/a.pem" --ssl-keyfile "$work/locked.key"
    refused "b.key: it is not the certificate's" --ssl-certfile "$work/a.pem" --ssl-keyfile "$work/b.key"
fi
for origin in a.example https://a.example/ "https://a.example/page"; do # browsers never send such a one
    run 2 "$fathom" serve --model-path r1-mini --cors-origins "https://b.example,$origin"
    grep -q -- "--cors-origins: \"$origin\" is no origin: https://HOST or" "$work/err" || fail "an origin: $origin"
done
run 2 "$fathom" serve --model-path r1-mini --host 203.0.113.1
grep -q "cannot listen" "$work/err" || fail "an address that is not ours"

# start OPTION...: a server, its pid in $server and its address in $url
start()
{
    : >"$work/log" # there before the server is
    "$fathom" serve --quiet --port 0 --max-total-tokens 8192 "$@" 2>"$work/log" &
    server=$!
    trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
    for _ in $(seq 200); do
        url=$(sed -n 's/.*listening on //p' "$work/log")
        [ -z "$url" ] || return 0
        sleep 0.05
    done
    fail "the server did not start: $(cat "$work/log")"
}

stop()
{
    kill -TERM "$server"
    wait "$server" || fail "the server's exit status is $?"
}

start --model-path r1-mini --json-model-override-args "$small_shape" --tokenizer-path "$data/tokenizer" --max-body-mb 1

run 2 "$fathom" serve --model-path r1-mini --port "${url##*:}"
grep -q "in use" "$work/err" || fail "two servers on one port"

# ask STATUS CURL-OPTION...: leaves the body in $work/out
ask()
{
    want=$1
    shift
    got=$(curl -sS -m 30 -o "$work/out" -w '%{http_code}' "$@" 2>"$work/err") || fail "curl: $*"
    [ "$got" = "$want" ] || fail "$got, want $want: $*"
}
hello='{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5, "temperature": 0'

ask 200 "$url/health"
ask 200 -I "$url/v1/models"
ask 200 "$url/v1/chat/completions" -d "$hello}"
grep -q '"finish_reason":"length"' "$work/out" || fail "no answer"
ask 200 -N "$url/v1/chat/completions" -d "$hello, \"stream\": true}"
[ "$(tail -n 2 "$work/out" | head -n 1)" = "data: [DONE]" ] || fail "the stream has no end"
ask 200 -0 -N "$url/v1/chat/completions" -d "$hello, \"stream\": true}"
grep -q '^data: \[DONE\]' "$work/out" || fail "HTTP/1.0"
echo "$hello}" | ask 200 -H "Transfer-Encoding: chunked" -H "Expect: 100-continue" "$url/v1/chat/completions" --data-binary @-
head -c 3000000 /dev/zero >"$work/big"
ask 413 -H "Expect:" --data-binary @"$work/big" "$url/generate"
ask 404 "$url/nothing/here"
ask 405 -X DELETE "$url/generate"
ask 400 "$url/generate" -d 'not json'
stop

# Without a model it serves the one in the box, which answers with words.
start
ask 200 "$url/v1/chat/completions" \
    -d '{"messages": [{"role": "user", "content": "What is 27 + 48?"}], "max_tokens": 200, "temperature": 0}'
grep -q '"content":"[^"]*75' "$work/out" || fail "27 + 48: $(cat "$work/out")"
grep -q '"reasoning_content":"[^"]*carry 1' "$work/out" || fail "no reasoning: $(cat "$work/out")"
stop
