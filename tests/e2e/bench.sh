#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The table, the JSON line, the details and the one-batch measurement.
. "$(dirname "$0")/lib.sh"

small() { run 0 "$fathom" bench --quiet --model-path r1-mini --json-model-override-args "$small_shape" "$@"; }

small --dataset-name random --random-input-len 32 --random-output-len 8 --random-range-ratio 1 \
    --num-prompts 6 --result-filename "$work/r.jsonl" --output-details "$work/d.jsonl" --return-logprob

# Row by row as SGLang prints it; numbers become N.
sed -n '/^======/,/^=====*$/p' "$work/out" | sed 's/[0-9][0-9.]*  *$/N/; s/  */ /g' >"$work/table"
cat >"$work/want" <<'T'
====== Offline Throughput Benchmark Result =======
Backend: engine 
Successful requests: N
Benchmark duration (s): N
Total input tokens: N
Total generated tokens: N
Last generation throughput (tok/s): N
Request throughput (req/s): N
Input token throughput (tok/s): N
Output token throughput (tok/s): N
Total token throughput (tok/s): N
==================================================
T
sed -i 's/[0-9][0-9.]*$/N/' "$work/table"
cmp -s "$work/table" "$work/want" || fail "the table differs: $(diff "$work/table" "$work/want")"
grep -q "^Total input tokens:                      192       $" "$work/out" || fail "row format"
grep -q "^Total generated tokens:                  48        $" "$work/out" || fail "generated tokens"
grep -q "^#Input tokens: 192$" "$work/out" || fail "#Input tokens"
grep -q "^fathom: [0-9]* steps, mean batch " "$work/out" || fail "the block after the table"

for field in backend successful_requests total_latency total_input_tokens total_output_tokens \
    request_throughput input_throughput output_throughput total_throughput last_gen_throughput plan \
    weights_bytes workspace_bytes kv_bytes max_tokens n_steps mean_batch cache_hit_rate preemptions \
    forward_seconds load_seconds version model isa threads; do
    grep -q "\"$field\": " "$work/r.jsonl" || fail "no field $field in the JSON line"
done
[ "$(wc -l <"$work/d.jsonl")" -eq 6 ] || fail "details: one line per request"
for i in 0 1 2 3 4 5; do
    sed -n "$((i + 1))p" "$work/d.jsonl" |
        grep -q "^{\"index\": $i, \"prompt_ids\": \[.*\], \"output_ids\": \[.*\], \"finish_reason\": \"length\", \"output_logprobs\": \[-.*\]}$" ||
        fail "details of request $i"
done

# The result is appended, the details are replaced; a second run gives the same.
cp "$work/d.jsonl" "$work/d1.jsonl"
small --dataset-name random --random-input-len 32 --random-output-len 8 --random-range-ratio 1 \
    --num-prompts 6 --result-filename "$work/r.jsonl" --output-details "$work/d.jsonl" --return-logprob
[ "$(wc -l <"$work/r.jsonl")" -eq 2 ] || fail "the result was not appended"
cmp -s "$work/d.jsonl" "$work/d1.jsonl" || fail "two runs differ"
[ "$(ls "$work" | grep -c tmp)" -eq 0 ] || fail "a temporary file was left"

# Only a regular file is replaced: of a link the target is written, a pipe stays a pipe, and what was
# printed stays when the file is standard output by another name.
few="bench --quiet --model-path $data/v3 --dataset-name random --random-input-len 8 --random-output-len 4
     --random-range-ratio 1 --num-prompts 2 --skip-warmup"
run 0 "$fathom" $few --output-details "$work/plain"
echo old >"$work/target"
chmod 600 "$work/target"
ln -s target "$work/link"
run 0 "$fathom" $few --output-details "$work/link"
[ -L "$work/link" ] && cmp -s "$work/target" "$work/plain" || fail "details through a link"
[ "$(stat -c %a "$work/target")" = 600 ] || fail "details: the file's permissions changed"
ln -s later "$work/early"
run 0 "$fathom" $few --output-details "$work/early"
[ -L "$work/early" ] && cmp -s "$work/later" "$work/plain" || fail "details through a link to a file that was not there"
mkfifo "$work/pipe"
timeout 60 cat "$work/pipe" >"$work/piped" &
run 0 "$fathom" $few --output-details "$work/pipe"
wait $!
[ -p "$work/pipe" ] && cmp -s "$work/piped" "$work/plain" || fail "details into a pipe"
ln -s /proc/self/fd/1 "$work/screen"
run 0 "$fathom" $few --output-details "$work/screen" --result-filename "$work/screen"
[ -L "$work/screen" ] && grep -q "^Total token throughput" "$work/out" && grep -q '^{"backend"' "$work/out" &&
    grep '^{"index"' "$work/out" | cmp -s - "$work/plain" || fail "details on standard output"

# A file that cannot be written costs neither the table nor the other file.
ln -s /dev/full "$work/full"
rm "$work/plain"
run 2 "$fathom" $few --result-filename "$work/full" --output-details "$work/plain"
grep -q "^fathom bench: --result-filename .*full: No space left on device$" "$work/err" || fail "no word of the full disk"
grep -q "^Total token throughput" "$work/out" && [ -s "$work/plain" ] || fail "a result was lost with the file"
run 2 "$fathom" bench --quiet --model-path "$data/v3" --batch-size 1 2 --input-len 8 --output-len 2 \
    --result-filename "$work/full"
grep -q "full: 2 of 2 lines could not be written" "$work/err" && [ "$(wc -l <"$work/out")" -eq 3 ] ||
    fail "one batch, and a full disk"

# Sampling parameters: a token limit, two answers each.
small --dataset-name random --random-input-len 8 --random-output-len 8 --num-prompts 2 \
    --output-details "$work/d.jsonl" \
    --extra-request-body '{"max_new_tokens": 5, "temperature": 1.0, "seed": 7, "n": 2}'
[ "$(wc -l <"$work/d.jsonl")" -eq 4 ] || fail "n = 2: two lines per request"
grep -q "^Total generated tokens:                  20        $" "$work/out" || fail "max_new_tokens"

# Every dataset that needs no file.
for name in synthetic generated-shared-prefix; do
    small --dataset-name $name --num-prompts 4 --gsp-num-groups 2 --gsp-prompts-per-group 2 \
        --gsp-system-prompt-len 64 --gsp-question-len 8 --gsp-output-len 4 --max-total-tokens 16384
    grep -q "^Successful requests:                     4 " "$work/out" || fail "$name"
done

# Requests that are cut are counted, whatever cut them: 50 and 40 tokens in a context, then a pool of 64.
long="bench --model-path $data/v3 --dataset-name random --random-input-len 50 --random-output-len 40
      --random-range-ratio 1 --num-prompts 2 --skip-warmup"
for words in "context context --context-length" "KV.pool pool --max-total-tokens"; do
    set -- $words
    rm -f "$work/cut.jsonl"
    run 0 "$fathom" $long $3 64 --quiet --result-filename "$work/cut.jsonl"
    grep -q "^Requests cut to the $1: *2 (64 tokens)$" "$work/out" || fail "$3: not a word"
    grep -q "\"requests_cut_to_$2\": 2" "$work/cut.jsonl" || fail "$3: not in the JSON line"
    grep -q "^Total generated tokens: *28 " "$work/out" || fail "$3: answers of another length"
done
run 0 "$fathom" $long --max-total-tokens 96 --result-filename "$work/cut.jsonl"
! grep -q "Requests cut" "$work/out" || fail "a pool that is large enough"
tail -1 "$work/cut.jsonl" | grep -q '"requests_cut_to_pool": 0' || fail "a pool that is large enough, in JSON"
run 0 "$fathom" $long --max-total-tokens 96 --extra-request-body '{"max_new_tokens": 60}'
grep -q "^Requests cut to the KV pool: *2 (96 tokens)$" "$work/out" || fail "a limit of the request's own"

# So is a file with fewer conversations than requests were asked for.
echo '[{"conversations": [{"value": "a long question"}, {"value": "an answer of some words"}]}]' >"$work/one.json"
small --dataset-path "$work/one.json" --tokenizer-path "$data/tokenizer" --num-prompts 5 --result-filename "$work/few.jsonl"
grep -q "^Requests in the dataset: *1 of 5$" "$work/out" || fail "a short dataset: not a word"
grep -q '"num_prompts": 1,.*"requested_prompts": 5' "$work/few.jsonl" || fail "a short dataset, in JSON"

# Lengths of random, and ids that come from no file.
small --dataset-name random-ids --dataset-path "$work/one.json" --tokenizer-path "$data/tokenizer" \
    --random-input-len 8 --random-output-len 4 --random-range-ratio 1 --num-prompts 3
grep -q "^Total input tokens: *24 " "$work/out" || fail "random-ids"

# A run that is ended early reports what was measured, marked partial, with exit status 4.
endless="--dataset-name random --random-input-len 40 --random-output-len 2000 --random-range-ratio 1
         --num-prompts 4000 --skip-warmup --result-filename $work/part.jsonl"
partial() # partial WHY
{
    grep -q "^Result: *partial ($1)$" "$work/out" || fail "$1: the table does not say it is partial"
    grep -q "^Total token throughput" "$work/out" || fail "$1: no table"
    grep -q "^#Input tokens: 160000$" "$work/out" && ! grep -q "^Total input tokens: *160000 " "$work/out" ||
        fail "$1: prompts that were not read are counted"
    tail -1 "$work/part.jsonl" | grep -q "\"partial\": true, \"ended_by\": \"$1\"" || fail "$1: not in the JSON line"
}
run 4 "$fathom" bench --quiet --model-path r1-mini --json-model-override-args "$small_shape" $endless --time-limit 3
partial "time limit"
for signal in TERM INT; do
    "$fathom" bench --quiet --model-path r1-mini --json-model-override-args "$small_shape" $endless \
        >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    for _ in $(seq 300); do grep -q "^#Output" "$work/out" && break || sleep 0.1; done
    sleep 1
    kill -$signal $pid
    got=0
    wait $pid || got=$?
    [ "$got" -eq 4 ] || fail "SIG$signal: exit $got, want 4"
    partial "SIG$signal"
done
run 2 "$fathom" bench --time-limit 5 --batch-size 1

# One batch: lists in both notations, all combinations.
small --batch-size 1 2 --input-len 16,32 --output-len 4 --result-filename "$work/one.jsonl"
[ "$(wc -l <"$work/one.jsonl")" -eq 4 ] || fail "2 x 2 combinations"
for field in prefill_latency prefill_throughput median_decode_latency median_decode_throughput \
    total_latency overall_throughput batch_size input_len output_len; do
    [ "$(grep -c "\"$field\": " "$work/one.jsonl")" -eq 4 ] || fail "no field $field"
done
run 2 "$fathom" bench --quiet --model-path r1-mini --json-model-override-args "$small_shape" \
    --batch-size 64 --input-len 1024 --max-total-tokens 1024
grep -q "does not fit in a KV pool" "$work/err" || fail "an impossible batch"
