#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom plan: the table, JSON, page and script; the order of layouts; what is refused; calibration.
# With a directory as second argument the page is left there for the browser's test.
. "$(dirname "$0")/lib.sh"
export FM_TUNED_DIR="$here/../../tuned" HOME="$work" XDG_CACHE_HOME="$work/cache"
cd "$work"
field() { python3 -c 'import json,sys; o = json.load(open(sys.argv[1])); print(eval("o" + sys.argv[2]))' "$work/out" "$1"; }

# This machine, bench's flags.
small="--model-path r1-mini --machine cpu-amx --dataset-name random --num-prompts 12 --random-input-len 64 --random-output-len 16"
fixed="--max-total-tokens 8192 --pp-size 1" # free memory and the timing of a pipeline's cut vary
run 0 "$fathom" plan $small $fixed --json
for name in total_token_throughput mean_ttft_ms mean_tpot_ms; do
    [ "$(field "['$name'] > 0 and o['$name'] == o['layouts'][0]['$name']")" = True ] || fail "$name"
done
[ "$(field "['layouts'][0]['fits'] and o['layouts'][0]['error'] > 0 and len(o['layouts']) >= 1")" = True ] || fail "the list"
[ "$(field "['layouts'][0]['total_token_throughput'] >= o['layouts'][-1].get('total_token_throughput', 0)")" = True ] || fail "the order"
grep -v memory_left out >one.json
run 0 "$fathom" plan $small $fixed --json
grep -v memory_left out | cmp -s - one.json || fail "a plan is not the same twice"
run 0 "$fathom" plan --machine cpu-amx --model-path fathom-tiny --num-prompts 4 --tp-size 1 --pp-size 1 --dp-size 1
grep -q "^  1  tp 1  .*+-" out && grep -q "^fathom bench --model-path fathom-tiny --num-prompts 4\$" out || fail "the table"
run 0 "$fathom" plan $small --tp-size 1 --pp-size 1 --dp-size 1 --speculative-algorithm NEXTN --accept-length 1.9 --json
[ "$(field "['layouts'][0]['fits']")" = True ] || fail "speculation"

# A server is planned: the command starts it, a second one measures it, and the bounded latencies show.
run 0 "$fathom" plan $small --request-rate 2 --slo-tpot 9000 --tp-size 1 --pp-size 1 --dp-size 1
grep -q "TTFT ms *P99 *TPOT ms *P99" out || fail "no 99th percentiles"
grep -q "^fathom serve --model-path r1-mini\$" out || fail "no server"
grep -q "^fathom bench --base-url http://127.0.0.1:30000 --dataset-name random --num-prompts 12 .* --request-rate 2\$" out || fail "no client"
# Of layouts that answer in time what comes at a rate the one with the fewest devices is the best;
# without --num-prompts there are enough requests for a 99th percentile.
run 0 "$fathom" plan --model v2-lite --cluster 8xH200 --request-rate 20 --slo-ttft 500 --slo-tpot 30
grep -q ": 512 requests" out && grep -q "^  1  tp 1  " out && ! grep -q "^one more node" out || fail "more devices than a rate needs"
grep -q "^fathom bench --base-url .* --request-rate 20 --num-prompts=512\$" out || fail "another workload than the plan's"
run 1 "$fathom" plan $small --request-rate 2 --slo-tpot 0.001
grep -q "^  1! tp" out && grep -q "^no layout of this cluster meets --slo-tpot 0.001 (99th" out && ! grep -q "^fathom serve" out || fail "a bound that nothing meets"
run 1 "$fathom" plan $small --request-rate 2 --slo-tpot 0.001 --json
[ "$(field "['meets_slo']")" = False ] || fail "a bound that nothing meets, in JSON"
for words in "--request-rate 2" "--max-concurrency 4"; do
    run 2 "$fathom" bench --num-prompts 2 $words
    grep -q "for a running server.*--base-url" err || fail "bench ignores $words"
done

# Files below the pool: prefixes that left it come back and the answers take less time, unless the
# disk is slower than computing.
one_rank="--tp-size 1 --pp-size 1 --dp-size 1"
turns="--model-path r1-mini --machine cpu-amx --dataset-name generated-shared-prefix --gsp-num-groups 6 --gsp-prompts-per-group 4 --gsp-system-prompt-len 512 --gsp-question-len 32 --gsp-output-len 8 --max-total-tokens 1536 --max-concurrency 2 $one_rank --json"
disk() { echo '{"nodes": 1, "devices": 1, "device": "cpu-amx", "tiers": {"file_read_bytes_per_s": '"$1"', "file_write_bytes_per_s": 1e9}}' >disk.json; run 0 "$fathom" plan $turns --cluster disk.json --hicache-storage-dir kept; }
run 0 "$fathom" plan $turns
pool=$(field "['total_token_throughput']")
[ "$(field "['layouts'][0].get('tiers')")" = None ] || fail "tiers that were not asked for"
disk 1e9
[ "$(field "['layouts'][0]['tiers']['storage_tokens'] > 2000 and o['total_token_throughput'] > 1.1 * $pool")" = True ] || fail "nothing comes from files"
disk 1e6
[ "$(field "['layouts'][0]['tiers']['loads_declined'] > o['layouts'][0]['tiers']['loads'] and o['total_token_throughput'] < 1.1 * $pool")" = True ] || fail "a slow disk is used"
[ ! -e kept ] || fail "plan made a directory"
run 0 "$fathom" plan $small $one_rank --hicache-storage-dir kept
grep -q "^tiers: .* files .* read" out && grep -q "^tiers of the first: " out || fail "tiers do not show"
run 0 "$fathom" plan $small $one_rank
[ ! -s err ] || fail "a note about nothing"

# Of four ranks on two CPUs one computes at a time here: it has a CPU to itself, as one of two ranks has.
tpot() { echo '{"nodes": 1, "devices": '"$1"', "device": "cpu-amx"}' >ranks.json; run 0 "$fathom" plan $small --max-total-tokens 8192 --cluster ranks.json --tp-size 1 --dp-size 1 --pp-size "$1" --max-concurrency 1 --json; field "['mean_tpot_ms']"; }
two=$(tpot 2) four=$(tpot 4)
python3 -c "exit(not 0.8 * $two < $four < 1.3 * $two)" || fail "waiting ranks keep their CPU: $four ms a token with four stages, $two with two"

# Answers that may end with any token: the scheduler guesses how long they are, and preempts.
run 0 "$fathom" plan --model-path r1-mini --machine cpu-amx --dataset-name random --num-prompts 24 --random-input-len 64 --random-output-len 200 --random-range-ratio 1 \
    --max-total-tokens 2048 --schedule-conservativeness 0.1 --disable-ignore-eos $one_rank --json
[ "$(field "['layouts'][0]['preemptions'] > 0")" = True ] || fail "no preemption"

# Sentences are whole.
echo '{"nodes": 1, "devices": 1, "device": "cpu-amx"}' >one_host.json
run 2 "$fathom" plan --model r1 --cluster one_host.json --num-prompts 2
grep -q "num_hidden_layers.*}')\$" err || fail "the sentence is cut: $(cat err)"

# A job script asks for the CPUs that the plan counts with, and binds no rank to one of them.
echo '{"nodes": 2, "devices": 1, "device": "cpu-amx"}' >two.json
run 0 "$fathom" plan $small --cluster two.json --tp-size 2 --pp-size 1 --dp-size 1 --write-script cpu.sh --html cpu.html
bash -n cpu.sh && grep -q "^#PBS -l select=2:ncpus=2:mpiprocs=1\$" cpu.sh && grep -q "^#SBATCH --cpus-per-task=2\$" cpu.sh &&
    grep -q "^run=(mpirun -np 2 --map-by ppr:1:node --bind-to none)\$" cpu.sh || fail "a script for CPUs"
grep -q "<svg" cpu.html && ! grep -Eq "<script|https?://" cpu.html || fail "the page of CPUs"

# Users ask again when answered: how many requests are drawn does not matter, whole numbers of hosts
# are looked at, and a cluster of three hosts has layouts of two.
echo '{"nodes": 3, "devices": 1, "device": "cpu-amx"}' >three.json
few="--model-path r1-mini --cluster three.json --dataset-name random --random-input-len 64 --random-output-len 16 --max-total-tokens 8192 --tp-size 1 --pp-size 1"
run 0 "$fathom" plan $few --users 24 --slo-tpot 116 --json
need=$(field "['users']['nodes'], o['users']['p99_tpot_ms']")
[ "$(field "['users']['p99_tpot_ms'] <= 116 and o['users']['nodes'] not in (1, 2, 4, 8, 16, 32, 64)")" = True ] || fail "hosts for users: $need"
[ "$(field "['layouts'].__len__() == 3 and sorted(l['nodes'] for l in o['layouts']) == [1, 2, 3]")" = True ] || fail "two of three hosts"
run 0 "$fathom" plan $few --users 24 --slo-tpot 116 --num-prompts 300 --json
[ "$(field "['users']['nodes'], o['users']['p99_tpot_ms']")" = "$need" ] || fail "users depend on --num-prompts"

# Bad input is one sentence.
refuse() { says=$1; shift; run 2 "$fathom" plan "$@"; grep -q "^fathom plan: .*$says" err || fail "no \"$says\""; [ "$(wc -l <err)" -le 2 ] || fail "more than a sentence"; }
refuse "neither NODESxDEVICESxKIND" --cluster 2x8
refuse "no table of measured costs for \"H999\"" --cluster 2x8xH999
refuse "cannot open\|No such file" --cluster none.json
refuse "needs --slo-ttft or --slo-tpot" $small --users 4
refuse "Leave out --request-rate" $small --users 4 --slo-tpot 9 --request-rate 2
refuse "none of the layouts .* tp x pp x dp .* must be" $small --tp-size 7
refuse "none.json: No such file" $small --dataset none.json
refuse "leave out --cluster" --calibrate --cluster 8xH200
refuse "not a positive number" $small --request-rate fast
refuse "neither NODESxDEVICESxKIND" --cluster 2x8xH200,
echo '{"fathom_tuned": 1, "name": "x", "kind": "cpu"}' >broken.json
refuse "broken.json: memory_bytes" --machine broken.json

# A CPU without a table is scaled from the one that ships: by a short measurement, or by what doctor
# kept of this host; doctor's file is a cluster, too.  Links that were not measured are not said to be.
one="--model-path r1-mini --num-prompts 4 --dataset-name random --random-input-len 32 --random-output-len 4"
FM_ISA=avx2 run 2 "$fathom" plan --dataset-name none
[ "$(wc -l <err)" -eq 1 ] || fail "the machine is measured before words are read: $(cat err)"
scaled() { FM_ISA=avx2 run 0 "$fathom" plan $one "$@"; grep -q "scaled from cpu-amx by .*--calibrate" err && grep -q "+- *3[0-9]%" out && ! grep -q "links.*measured" out || fail "a CPU without a table: $*"; }
scaled
grep -q "by a short measurement" err || fail "this machine is measured"
run 0 "$fathom" doctor --seconds 1 --directory none --rates rates.json
scaled --cluster rates.json
mkdir -p cache/fathom && cp rates.json cache/fathom/rates.json
scaled
grep -q "by rates of fathom doctor" err || fail "what doctor kept is not used"

# Calibration writes a table that is found again.
run 0 "$fathom" plan --calibrate --calibrate-seconds 3 --quiet --model-path r1-mini --json-model-override-args "$small_shape" --max-total-tokens 4096
table=$(sed -n 's/^table of costs: //p' out)
[ -s "$table" ] || fail "no table: $table"
run 0 "$fathom" plan --model-path r1-mini --json-model-override-args "$small_shape" --num-prompts 4 --dataset-name random --random-input-len 32 --random-output-len 4
grep -q "^costs from $table" out || fail "the new table is not used"
run 0 "$fathom" tune --trials 2 --confirm 0 --knobs max-running-requests,chunked-prefill-size bench --model-path r1-mini --json-model-override-args "$small_shape" \
    --max-total-tokens 4096 --num-prompts 4 --dataset-name random --random-input-len 32 --random-output-len 4 --skip-warmup
grep -q "points from the plan come first" err || fail "tune is not seeded"

# A cluster of GPUs, planned by any build, with CUDA or without: the order that was measured
# elsewhere (docs/planning.md) for R1, 2000 requests.
grid() { run 0 "$fathom" plan --model r1 --cluster "$@" --num-prompts 2000 --all-devices --json; field "['total_token_throughput']"; }
tp8=$(grid 1x8xH200 --tp-size 8 --pp-size 1 --dp-size 1 --ep-size 1)
tp16=$(grid 2x8xH200 --tp-size 16 --pp-size 1 --dp-size 1 --ep-size 1)
hybrid=$(grid 2x8xH200 --tp-size 8 --pp-size 2 --dp-size 2 --ep-size 1 --enable-dp-attention)
attention=$(grid 1x8xH200 --tp-size 8 --dp-size 4 --pp-size 1 --ep-size 8 --enable-dp-attention)
python3 -c 'import sys; a = list(map(float, sys.argv[1:])); sys.exit(a != sorted(a))' "$tp16" "$tp8" "$attention" "$hybrid" ||
    fail "tp16 $tp16 < tp8 $tp8 < one node with DP attention $attention < two nodes with DP attention and pp $hybrid"
run 0 "$fathom" plan --model r1 --cluster 2x8xH200 --num-prompts 40 --tp-size 8 --write-script job.sh --html plan.html
bash -n job.sh && grep -q "^#PBS -l select=2:ncpus=64:mpiprocs=8:ngpus=8" job.sh && grep -q "^#SBATCH --nodes=2" job.sh || fail "the script"
grep -q "^mpirun -np 16 --map-by ppr:8:node --bind-to none fathom bench --model r1 --num-prompts 40 --tp-size=8" out || fail "the command"
grep -q "<svg" plan.html && ! grep -Eq "<script|https?://" plan.html || fail "the page"
run 0 "$fathom" plan --model v2-lite --cluster 1x8xH200 --num-prompts 64 --users 32 --slo-tpot 40 --slo-ttft 5000
grep -q "^32 users: [0-9]* devices\? on" out && grep -q "^one more node: " out || fail "users, one more node"
run 0 "$fathom" plan --model r1 --cluster 2x8xH100 --num-prompts 8 --tp-size 8 --pp-size 2 --dp-size 1 --ep-size 1
grep -q "scaled from H200" err && grep -q "not measured" out && ! grep -q "links.*measured" out || fail "a GPU without a table"
run 0 "$fathom" plan --model r1 --cluster 3x8xH200 --num-prompts 8 --tp-size 8 --ep-size 1 --json
[ "$(field "['layouts'] and sorted({l['ranks'] for l in o['layouts']}) == [8, 16, 24]")" = True ] || fail "two of three nodes"
if [ $# -gt 0 ]; then mkdir -p "$1" && cp plan.html "$1/plan.html"; fi
