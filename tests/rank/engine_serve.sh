#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# engine_serve.sh PROGRAM RANKS LAYOUT-OPTION...: a server on several ranks: it
# streams what one rank would stream, exits with status 0 after SIGTERM, and ends at
# once with an error when it loses a rank.
. "$(dirname "$0")/job.sh"
command -v curl >/dev/null || { echo "no curl"; exit 77; }
ranks=$1
shift
layout=$*

listening() { grep -q "listening on" "$work/log"; }

serve() # serve: ranks behind one address, $url
{
    start_job "$ranks" serve --port 0 --max-total-tokens 4096 --profile-dir "$work" $layout
    wait_until 30 listening
    url=$(sed -n 's/.*listening on //p' "$work/log")
}

question='{"messages": [{"role": "user", "content": "What is 27 + 48?"}], "max_tokens": 200, "temperature": 0'
ask() { curl -sS -m 30 -N "$url/v1/chat/completions" -d "$question, \"stream\": $1}"; }

# What the stream says, however it was cut into pieces.
words()
{
    cat >"$work/stream.$1"
    for part in reasoning_content content finish_reason; do
        grep -o "\"$part\":\"[^\"]*\"" "$work/stream.$1" | cut -d'"' -f4 | tr -d '\n'
        echo
    done
}

"$fathom" serve --quiet --port 0 --max-total-tokens 4096 >"$work/log" 2>&1 &
job_pid=$!
wait_until 30 listening
url=$(sed -n 's/.*listening on //p' "$work/log")
ask true | words one >"$work/one"
kill -TERM "$job_pid"
wait "$job_pid"
grep -q "27 + 48 = 75" "$work/one" || fail "one rank says nothing"

serve
for _ in 1 2 3; do
    ask true | words many >"$work/many"
    cmp -s "$work/one" "$work/many" || fail "$ranks ranks say: $(cat "$work/many")"
done
ask false | grep -q '"content":"[^"]*75' || fail "27 + 48 in one piece"
for i in 1 2 3 4 5 6; do
    ask true | words "$i" >"$work/many$i" &
    asked="${asked:-} $!"
done
wait ${asked:-}
for i in 1 2 3 4 5 6; do cmp -s "$work/one" "$work/many$i" || fail "question $i at the same time"; done

# A profile while it runs: every rank of every replica records.
trace=$(curl -sS -m 30 -X POST "$url/start_profile" | tail -n 1)
asked=
for i in 1 2 3 4; do
    ask true | words "$i" >"$work/many$i" &
    asked="$asked $!"
done
wait $asked
for i in 1 2 3 4; do cmp -s "$work/one" "$work/many$i" || fail "question $i while a profile is recorded"; done
curl -sS -m 30 -X POST "$url/stop_profile" | grep -q . || fail "/stop_profile"
"$fathom" trace "$trace" >"$work/said" || fail "fathom trace $trace: $(cat "$work/said")"
grep -q ": $ranks ranks" "$work/said" || fail "not of all ranks: $(cat "$work/said")"
if grep -q "Note:" "$work/said"; then fail "$(grep Note: "$work/said")"; fi
for r in $(seq 0 $((ranks - 1))); do
    "$fathom" trace "$trace.rank$r" | grep -q "^experts (moe)" || fail "rank $r recorded no ops"
done
ask true | words many >"$work/many"
cmp -s "$work/one" "$work/many" || fail "after a profile"

# SIGTERM to rank 0, as an operator sends it: all ranks exit with status 0.
kill -TERM "$(rank_pid 0)"
rc=0
wait "$job_pid" || rc=$?
job_pid=
[ "$rc" -eq 0 ] || fail "SIGTERM: status $rc, $(cat "$work/log")"
if alive; then fail "processes are left"; fi

serve
kill -KILL "$(rank_pid $((ranks - 1)))"
ends_badly 10 "^fathom: rank $((ranks - 1)) on .* died; it was: "
echo "$ranks ranks serve, leave when told to, and notice a loss"
