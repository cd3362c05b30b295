#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom tune over any program and over fathom's own knobs; studies that were killed; presets.
# With a directory as second argument the report is left there for the browser's test.
. "$(dirname "$0")/lib.sh"
cd "$work"

# A program with a known optimum at n = 40 with mode b, which fails above 60.
cat >prog.sh <<'END'
n=$1 mode=$2
[ "$n" -le 60 ] || { echo "out of memory"; exit 3; }
bonus=0; [ "$mode" = b ] && bonus=50
echo "Total rate (tok/s): $((1000 + bonus - (n - 40) * (n - 40) / 4)).0"
END
prog() { want=$1; shift; run "$want" "$fathom" tune --param n=1..80 --param 'mode={a,b}' --metric 'rate.*: *([0-9.]+)' --maximize "$@"; }

prog 0 --trials 25 --html report.html --json report.json -- sh prog.sh '{n}' '{mode}'
grep -q "^Points tried: *25 " "$work/out" && grep -q "^mode  *b " "$work/out" || fail "the table"
grep -q '"value": 10[45]' report.json && grep -q '"runs": 2' report.json || fail "the best, confirmed: $(cat report.json)"
grep -q "^sh prog.sh [34][0-9] b$" "$work/out" || fail "the winner's command"
grep -q "trial .* failed .*exit status 3: out of memory" "$work/err" || fail "a failure is not told"
grep -q "<svg" report.html && ! grep -Eq "<script|https?://" report.html || fail "the page"

# The study goes on: nothing is run again, more trials are added, another search is refused.
lines=$(wc -l <tune-study.jsonl)
prog 0 --trials 25 --quiet -- sh prog.sh '{n}' '{mode}'
[ "$(wc -l <tune-study.jsonl)" -eq "$lines" ] || fail "a complete study was continued"
prog 0 --trials 27 --quiet -- sh prog.sh '{n}' '{mode}'
[ "$(grep -c '"state"' tune-study.jsonl)" -ge $((lines + 1)) ] || fail "two more trials"
prog 2 --trials 30 -- sh prog.sh '{mode}' '{n}'
grep -q 'holds another study: its "what" differs' "$work/err" || fail "another command"
prog 2 --trials 30 --require 'rate.*: *([0-9.]+) <= 9' -- sh prog.sh '{n}' '{mode}'
grep -q 'holds another study: its "limits" differs' "$work/err" || fail "another limit"
prog 2 --trials 30 --report 'step ([0-9]+)' -- sh prog.sh '{n}' '{mode}'
grep -q 'holds another study: its "report" differs' "$work/err" || fail "other intermediate values"
run 2 "$fathom" tune --param n=1..80 --param 'mode={a,b}' --metric '([0-9.]+)' --maximize --trials 30 -- sh prog.sh '{n}' '{mode}'
grep -q 'holds another study: its "metric" differs' "$work/err" || fail "another metric"

# Killed at once and without warning, in the middle of trials: what had ended is kept, nothing else runs on.
cat >slow.sh <<'END'
sleep 0.2; echo "value $1"
END
"$fathom" tune --param n=1..1000 --metric 'value ([0-9]+)' --minimize --trials 500 --study killed.jsonl --quiet \
    -- sh slow.sh '{n}' >/dev/null 2>&1 &
pid=$!
for _ in $(seq 100); do [ "$(cat killed.jsonl 2>/dev/null | wc -l)" -ge 4 ] && break || sleep 0.1; done
kill -9 $pid
wait $pid 2>/dev/null || true
had=$(grep -c '"state":"ok"' killed.jsonl)
[ "$had" -ge 3 ] || fail "trials before the kill: $had"
printf '{"trial":99,"at":{"n":"5"' >>killed.jsonl # a write that was cut off
run 0 "$fathom" tune --param n=1..1000 --metric 'value ([0-9]+)' --minimize --trials $((had + 2)) --confirm 0 \
    --study killed.jsonl --quiet -- sh slow.sh '{n}'
[ "$(grep -c '"state":"ok"' killed.jsonl)" -eq $((had + 2)) ] || fail "the study did not go on"
grep -q '"trial":99' killed.jsonl && fail "half a line was kept"

# An interrupt ends the search with a report and a status of its own.
"$fathom" tune --param n=1..1000 --metric 'value ([0-9]+)' --minimize --trials 500 --study int.jsonl --quiet \
    -- sh slow.sh '{n}' >"$work/out" 2>"$work/err" &
pid=$!
for _ in $(seq 100); do [ "$(cat int.jsonl 2>/dev/null | wc -l)" -ge 4 ] && break || sleep 0.1; done
kill -INT $pid
got=0
wait $pid || got=$?
[ "$got" -eq 4 ] && grep -q "^Ended: *SIGINT" "$work/out" || fail "an interrupt: exit $got"

# What is asked for wrongly is said at once.
run 2 "$fathom" ablate bar
grep -q '"bar" stands where an option is expected' "$work/err" || fail "a stray word"
run 2 "$fathom" tune
run 2 "$fathom" tune --param n=1..5 -- echo '{n}'
run 2 "$fathom" tune --param n=1..5 --metric x -- echo '{n}'
run 2 "$fathom" tune --param n=5..1 --metric x --maximize -- echo '{n}'
run 2 "$fathom" tune --param n=1..5 --metric '(' --maximize --study a.jsonl -- echo '{n}'
run 2 "$fathom" tune --param n=1..5 --metric x --maximize -- echo n
grep -q "does not mention the parameter {n}" "$work/err" || fail "an unused parameter"
run 2 "$fathom" tune --param n=1..5 --metric x --maximize --sampler magic --study b.jsonl -- echo '{n}'
run 2 "$fathom" tune fly
grep -q '"fly": expected bench, serve, or -- and a command' "$work/err" || fail "tune fly"
run 2 "$fathom" tune --trails 20 bench
grep -q "there is no option --trails; is --trials meant" "$work/err" || fail "a misspelt option"
run 2 "$fathom" tune bench --num-promts 3 # before the first trial
[ "$(cat "$work/err")" = "fathom tune: there is no option --num-promts; is --num-prompts meant?" ] || fail "a misspelt flag of bench"
run 2 "$fathom" ablate --num-promts 3
[ "$(cat "$work/err")" = "fathom ablate: there is no option --num-promts; is --num-prompts meant?" ] || fail "a misspelt flag of an ablation"
run 2 "$fathom" tune --param n=1..5 --constraint 'n > 9' --metric x --maximize --study none.jsonl -- echo '{n}'
grep -q "no point was found that the constraints allow" "$work/err" || fail "constraints that nothing meets"
run 0 "$fathom" tune bench --help
grep -q "^Usage: fathom tune" "$work/out" || fail "tune bench --help"
run 2 "$fathom" tune serve --wings
grep -q "^fathom tune: .*--wings" "$work/err" || fail "a flag that serve does not have: $(cat "$work/err")"
run 1 "$fathom" tune --param n=1..2 --metric x --maximize --trials 1 --confirm 0 --study wings.jsonl -- "$fathom" serve --wings '{n}'
grep -q "exit status 2: fathom serve: .*--wings" "$work/err" || fail "what a failed trial said: $(cat "$work/err")"
run 1 "$fathom" tune --param n=1..5 --metric 'x=([0-9]+)' --maximize --trials 2 --study c.jsonl -- echo '{n}'
grep -q "none of 2 trials gave a value" "$work/err" || fail "no value at all"

# fathom's own knobs: the first trial has the defaults, the winner is a preset that bench reads.
small="--model-path r1-mini --max-total-tokens 4096 --dataset-name random --random-input-len 16 --random-output-len 8 --num-prompts 6 --skip-warmup"
run 0 "$fathom" tune --trials 4 --confirm 1 --knobs page-size,chunked-prefill-size,speculation,drafts --write-preset best.preset \
    --study own.jsonl bench $small --json-model-override-args "$small_shape"
grep -q "^Defaults: " "$work/out" || fail "no comparison with the defaults"
grep -q '"trial":0,"at":{"chunked-prefill-size":"2048","page-size":"16","speculation":"off"}' own.jsonl || fail "the first trial: $(sed -n 2p own.jsonl)"
grep -q "^--page-size=" best.preset && grep -q "^# fathom tune bench" best.preset || fail "the preset: $(cat best.preset)"
grep -q "^fathom bench " "$work/out" && grep -q -- " --page-size=" "$work/out" || fail "the winner's command"
run 0 "$fathom" bench --quiet $small --json-model-override-args "$small_shape" --preset best.preset --result-filename r.jsonl
grep -q "\"page_size\": $(sed -n 's/^--page-size=//p' best.preset)" r.jsonl || fail "bench does not read the preset"
run 0 "$fathom" bench --quiet $small --json-model-override-args "$small_shape" --page-size 64 --preset=best.preset --result-filename r2.jsonl
grep -q '"page_size": 64' r2.jsonl || fail "the command line does not win over the preset"
echo "page-size=16" >bad.preset
run 2 "$fathom" bench --preset bad.preset
grep -q "bad.preset, line 1" "$work/err" || fail "a bad preset"
run 2 "$fathom" run --preset none.preset hello
run 2 "$fathom" tune --knobs wings bench
run 0 "$fathom" tune --knobs help bench
grep -q "^threads  *1\.\.[0-9]" "$work/out" && ! grep -q "%" "$work/out" || fail "--knobs help"

# A server and its clients, with a latency that cannot be met and one that can.
serve="--model-path r1-mini --max-total-tokens 4096 --dataset-name random-ids --random-input-len 16 --random-output-len 8 --num-prompts 4 --skip-tokenizer-init"
run 0 "$fathom" tune --trials 2 --confirm 0 --knobs page-size --slo-ttft 100000 --study serve.jsonl \
    serve $serve --json-model-override-args "$small_shape"
grep -q "^fathom serve " "$work/out" && grep -q -- " --page-size=" "$work/out" || fail "serve: the winner's command"
grep -q -- "--num-prompts" "$work/out" && fail "serve: a flag of the client in the server's command"
run 2 "$fathom" tune --trials 2 --confirm 0 --knobs page-size --slo-ttft 100000 --study serve.jsonl \
    serve $serve --json-model-override-args "$small_shape" --request-rate 4
grep -q 'holds another study: its "what" differs' "$work/err" || fail "serve: another client"
run 1 "$fathom" tune --trials 2 --confirm 0 --knobs page-size --slo-ttft 0.001 --study slo.jsonl \
    serve $serve --json-model-override-args "$small_shape"
grep -q '"state":"unfit"' slo.jsonl || fail "an objective that cannot be met"

if [ $# -gt 0 ]; then mkdir -p "$1" && cp report.html "$1/tune.html"; fi
