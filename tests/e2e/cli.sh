#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Help, version, exit statuses, and the flags of other programs.
. "$(dirname "$0")/lib.sh"

tiny="--model-path r1-mini --quiet --max-total-tokens 4096 --num-prompts 2
      --dataset-name random --random-input-len 8 --random-output-len 4"
bench() { want=$1; shift; run "$want" "$fathom" bench $tiny --json-model-override-args "$small_shape" "$@"; }

run 0 "$fathom" --help
grep -q "^  bench " "$work/out" && grep -q "^  run " "$work/out" && grep -q "^  verify " "$work/out" ||
    fail "--help does not list the commands"
run 0 "$fathom" --version
grep -q "^fathom [0-9]" "$work/out" && grep -q "ISA in use" "$work/out" && grep -q "MPI" "$work/out" &&
    grep -q "CUDA" "$work/out" || fail "--version"
for command in bench run verify; do
    run 0 "$fathom" $command --help
    grep -q -- "--model-path" "$work/out" || fail "$command --help"
    run 0 "$fathom" $command --version
done
for words in "-h" "help"; do
    run 0 "$fathom" $words
    grep -q "^  bench " "$work/out" || fail "$words does not list the commands"
done
for words in "help bench" "bench -h"; do
    run 0 "$fathom" $words
    grep -q -- "--num-prompts" "$work/out" || fail "$words does not list the options"
done
run 2 "$fathom"
run 2 "$fathom" fly
run 2 "$fathom" help fly

# What could not be printed was not said: no command ends well then.
unprinted() # unprinted COMMAND...
{
    got=0
    timeout 120 "$@" >/dev/full 2>"$work/err" </dev/null || got=$?
    [ "$got" -eq 2 ] && [ "$(grep -c "^fathom: standard output: " "$work/err")" -eq 1 ] ||
        fail "exit $got with a full standard output: $*"
}
unprinted "$fathom" --version
unprinted "$fathom" --help
unprinted "$fathom" bench --help
unprinted "$fathom" run --version
unprinted "$fathom" bench $tiny --json-model-override-args "$small_shape"
unprinted "$fathom" bench --quiet --model-path r1-mini --json-model-override-args "$small_shape" --input-len 8
unprinted "$fathom" verify --tokenizer-path "$data/tokenizer" --tokenizer-golden "$data/tokenizer/golden.json"
unprinted "$fathom" verify --quiet --model-path "$data/v3" --golden "$data/v3/golden.json"
unprinted "$fathom" run --quiet --max-new-tokens 2 hello
unprinted "$fathom" eval --quiet --set "$data/tiny/held_out.jsonl" --limit 1 --max-new-tokens 2
# A closed stream is not taken by the next file or socket that is opened.
if [ -d /proc/self/fd ]; then
    "$fathom" tune --param n=1..2 --metric 'v=(.*)' --maximize --trials 1 --confirm 0 --study "$work/s.jsonl" -- \
        sh -c "readlink /proc/\$PPID/fd/0 /proc/\$PPID/fd/1 /proc/\$PPID/fd/2 >$work/fds; echo v={n}" <&- >&- 2>&- || true
    [ "$(grep -c "^/dev/null$" "$work/fds")" -eq 3 ] || fail "closed streams: $(cat "$work/fds")"
fi

# What could not be written for the largest size of files is said, too.
beyond() # beyond WHAT COMMAND...: refused with one line, and never ended by the signal
{
    what=$1
    shift
    (ulimit -f 2 && exec timeout 120 "$@" 2>&1 >/dev/null </dev/null) | cat >"$work/err" # a pipe has no limit
    [ "$(grep -c "^fathom [a-z]*: .*$what.*File too large" "$work/err")" -eq 1 ] || fail "ulimit -f: $*"
}
beyond "--output-details $work/far" "$fathom" bench $tiny --num-prompts 40 --json-model-override-args "$small_shape" --output-details "$work/far"
printf '{"before": "%01000d"}\n' 0 >"$work/far" && cp "$work/far" "$work/near"
beyond "--result-filename $work/far" "$fathom" bench $tiny --json-model-override-args "$small_shape" --result-filename "$work/far"
cmp "$work/far" "$work/near" || fail "half a line in --result-filename"
beyond "$work/far4" "$fathom" convert --quantize int4 "$here/../../models/fathom-tiny" "$work/far4"

# Hardly more addresses than the program itself takes: refused, and the threads that OpenBLAS would start,
# which have no room, keep no process from ending.  (A sanitizer needs more than any limit here.)
room=100000
until (ulimit -v $room && exec timeout 10 "$fathom" --version >/dev/null 2>&1) || [ $room -gt 2000000 ]; do
    room=$((room + 60000))
done
few() # few WORDS COMMAND...
{
    words=$1
    shift
    got=0
    (ulimit -v $room && exec timeout 60 "$@" >"$work/out" 2>"$work/err" </dev/null) || got=$?
    [ "$got" -eq 2 ] && grep -q "$words" "$work/err" || fail "exit $got under ulimit -v $room: $*"
}
if [ $room -le 2000000 ]; then
    few "the weights take\|Cannot allocate memory" "$fathom" bench --quiet --threads 1 --model-path "$here/../../models/fathom-tiny" --num-prompts 1
    few "OpenBLAS takes" "$fathom" scf --quiet "$data/chem/nwchem/h2.nw"
fi

# What goes into reports is UTF-8: names in an older encoding are refused, whatever would have written them.
odd=$(printf 'w\344sser')
cp "$data/chem/nwchem/h2.nw" "$work/$odd.nw"
foreign() # foreign WORDS COMMAND...
{
    words=$1
    shift
    run 2 "$@"
    [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q "$words" "$work/err" || fail "not UTF-8: $*"
}
foreign "fathom scf: word 2 of the command line is not UTF-8 at byte" "$fathom" scf "$work/$odd.nw" --json
foreign "word 3 " "$fathom" bench --run-name "$odd" --input-len 8
foreign "word 6 " "$fathom" plan --model r1-mini --json --served-model-name "$odd"
foreign "FM_RUN_NAME in the environment" env "FM_RUN_NAME=$odd" "$fathom" bench --input-len 8
echo "--run-name $odd" >"$work/odd.preset"
foreign "odd.preset, line 1 is not UTF-8" "$fathom" bench --preset "$work/odd.preset" --input-len 8

run 2 "$fathom" bench --no-such-flag
grep -q "^fathom bench: there is no option --no-such-flag; --help lists them$" "$work/err" || fail "an unknown option"
# Of what was misspelt, the nearest name; a model without its option, the option.
meant() { words=$1; shift; run 2 "$fathom" "$@"; grep -q -- "$words" "$work/err" || fail "\"$words\" is not in the message of: $*"; }
meant 'is "bench" meant' benhc
meant "is --page-size meant" bench --pagesize 4
meant "is --page-size meant" bench --num-prompts 2 --pge-size=4
meant "is --tp meant" serve -tp 2
run 0 env FM_PAGESIZE=4 FM_MODEL=r1 FM_OTHER=1 FM_LOG=warn "$fathom" bench $(echo "$tiny" | sed s/--quiet//) --json-model-override-args "$small_shape"
grep -q "FM_PAGESIZE in the environment is read by no option; is FM_PAGE_SIZE meant" "$work/err" || fail "a misspelt variable"
grep -q "FM_MODEL in the environment .*is FM_MODEL_PATH meant" "$work/err" || fail "the variable of an alias"
[ "$(grep -c "in the environment" "$work/err")" -eq 2 ] || fail "variables of others are none of ours"
meant "a model is named by --model-path /models/m$" bench /models/m
meant "a worker is named by --worker http://a:30000$" route http://a:30000
meant "no model /models/m: not a directory" serve /models/m --port 0 # as `vllm serve MODEL`
meant '"b" is one too many: give one MODEL' serve a b
run 0 "$fathom" run --quiet --temperature 0 --stop --pagesize --max-new-tokens 2 -- --hello
run 2 "$fathom" bench --page-size 0
run 2 "$fathom" bench --page-size many
run 2 "$fathom" bench stray
run 2 "$fathom" run
run 2 "$fathom" verify

# The words of a real job script, with only the program's name replaced.
run 0 "$fathom" bench --model r1-mini --json-model-override-args "$small_shape" \
    --dataset-name random --random-input 8 --random-output 4 --num-prompts 2 --load-format dummy \
    --seed 2025 --dtype bfloat16 --tp 1 --nnodes 2 --trust-remote-code --node-rank 0 \
    --dist-init-addr node0:5000 --cuda-graph-bs 1 2 4 --attention-backend fa3 --mem-fraction-static 0.5 \
    --enable-torch-compile --moe-runner-backend triton --quantization fp8 --kv-cache-dtype auto
grep -q "Total token throughput" "$work/out" || fail "no table"
for flag in nnodes trust-remote-code node-rank dist-init-addr cuda-graph-bs attention-backend \
    enable-torch-compile moe-runner-backend quantization; do
    [ "$(grep -c "^fathom bench: --$flag" "$work/err")" -eq 1 ] || fail "--$flag is not explained once"
done
run 2 "$fathom" bench --model r1-mini --json-model-override-args "$small_shape" --tp 16 --num-prompts 1 --no-launch
grep -q "mpirun -np 16 fathom" "$work/err" || fail "--tp 16 on one rank"
run 2 "$fathom" bench --model r1-mini --tp 1024 --num-prompts 1
grep -q "need 1024 ranks, and this process may use [0-9]* CPU" "$work/err" && grep -q -- "-np 1024 --oversubscribe" "$work/err" ||
    fail "more ranks than CPUs"
run 2 "$fathom" bench --model r1-mini --tp 8 --pp 2 --nnodes 2 --node-rank 0
grep -q "mpirun -np 16 --map-by ppr:8:node" "$work/err" && grep -q "ppr:1:node, write ppr:8:node" "$work/err" ||
    fail "one process per node: not told what to write"
run 2 "$fathom" bench --tp 2 --nnodes 2
grep -q "mpirun -np 2 --map-by ppr:1:node" "$work/err" && ! grep -q "write ppr:1:node" "$work/err" ||
    fail "one rank per node: $(cat "$work/err")"
run 0 "$fathom" bench --nnodes 2 --node-rank 1
grep -q "nothing to do on node 1" "$work/out" || fail "node 1 has work"

# The job scripts say what the program understands: a launcher that shows the words after the program's.
mkdir "$work/bin"
printf '#!/bin/sh\nwhile [ "$1" != "$FATHOM" ]; do shift; done\necho "$@"\n' >"$work/bin/mpirun"
chmod +x "$work/bin/mpirun"
cp "$work/bin/mpirun" "$work/bin/srun"
echo '[{"conversations": [{"value": "a long question"}, {"value": "an answer of some words"}]}]' >"$work/talks.json"
echo node0 >"$work/nodes"
for script in pbs/r1-2x8gpu.pbs slurm/r1-2x8gpu.sbatch; do
    PATH=$work/bin:$PATH FATHOM=$fathom PBS_NODEFILE=$work/nodes SLURM_JOB_ID=1 DATA=$work/talks.json \
        TOKENIZER=$data/tokenizer PROMPTS=1 run 0 bash "$here/../../contrib/$script"
    words=$(sed "s/^[^ ]* bench --device cuda //; s/--tp-size 8 --pp-size 2//; s/--result-filename .*//" "$work/out")
    run 0 "$fathom" bench $words --json-model-override-args "$small_shape"
    grep -q "^Successful requests: *1 " "$work/out" || fail "$script: $words"
done

# What would change the answers is refused.
bench 2 --kv-cache-dtype fp8_e5m2
grep -q "fp8_e5m2 is none of" "$work/err" || fail "--kv-cache-dtype fp8_e5m2"
bench 2 --fp8-activations maybe
grep -q "maybe is none of auto, on, off" "$work/err" || fail "--fp8-activations maybe"
bench 2 --attention-split-tile-size 640
grep -q "640 is none of 512, 1024, 2048, 4096" "$work/err" || fail "--attention-split-tile-size 640"
bench 2 --fp8-activations on
grep -q "weights are not FP8" "$work/err" || fail "--fp8-activations on, BF16 weights"
for words in "--quantization int4" "--lora-paths a" "--is-embedding"; do
    bench 2 $words
    grep -q "is not supported" "$work/err" || fail "$words"
done

# Aliases of vLLM mean the same.
bench 0 --max-num-seqs 3 --block-size 4 --max-model-len 64 --no-enable-prefix-caching

# A server's command line of vLLM; with --no-launch it ends where the ranks are missing.
run 2 "$fathom" serve "$data/v3" --tensor-parallel-size 8 --no-launch --enable-auto-tool-choice --seed 3 --reasoning-parser \
    deepseek_r1 --tool-call-parser deepseek_v31 --api-server-count 2 --compilation-config '{"level": 3}' --uvicorn-log-level \
    warning --no-enable-log-requests --async-scheduling --speculative-config '{"method": "mtp"}' --max-num-batched-tokens 4096
grep -q "mpirun -np 8 fathom" "$work/err" || fail "a command line of vLLM"
run 2 "$fathom" serve "$data/v3" --override-generation-config '{"temperature": 0.1}'
grep -q -- "--override-generation-config.*is not supported" "$work/err" || fail "--override-generation-config"

# Newer words of both, as their tutorials have them.
bench 0 --fp8-gemm-runner-backend auto --cuda-graph-max-bs-decode 64 --cuda-graph-bs-decode 1 2 4 --enable-priority-scheduling \
    --scheduler-recv-interval 10 --pp-async-batch-depth 1 --weight-loader-prefetch-checkpoints --retraction-policy length \
    --attn-cp-size 1 --speculative-draft m/NextN --disaggregation-transfer-backend mooncake --numa-node 0 1
bench 2 --config job.yaml
grep -q -- "--config job.yaml is not supported: --preset FILE" "$work/err" || fail "--config"
for words in "--quantize-and-serve" "--schedule-low-priority-values-first" "--default-priority-value 3"; do
    bench 2 $words
    grep -q "is not supported" "$work/err" || fail "$words"
done
run 2 "$fathom" bench --base-url http://127.0.0.1:1 --top-k 20
grep -q -- "--top-k 20 is not supported.*--extra-request-body" "$work/err" || fail "--top-k of a client"

# A client's command lines of SGLang and vLLM end where no server answers.
for words in "--disable-tqdm --tokenize-prompt --plot-throughput --ready-check-timeout-sec 1" \
    "--gsp-group-distribution uniform --gsp-send-routing-key --flush-cache-timeout 30 --profile-start-step 3" \
    "--backend vllm --label a --append-result --request-id-prefix b --plot-timeline" \
    "--backend vllm-chat --endpoint /v1/chat/completions --ignore-eos --num-warmups 0 --save-result --metric-percentiles 50,99"; do
    run 2 "$fathom" bench --base-url http://127.0.0.1:1 $words
    grep -q "no answer from the server" "$work/err" || fail "a client's command line: $words"
done

# Newer and older names of SGLang and vLLM.
bench 0 --disable-mla --n-share-experts-fusion 8 --pp-max-micro-batch-size 4 --enable-expert-parallel
run 0 "$fathom" bench $tiny --hf-overrides "$small_shape" --dataset-name random-ids

# A name of config.json that is not one is answered with the one that is near; so is a sampling
# parameter that cannot be, before a model that would take minutes to load.
run 2 "$fathom" bench $tiny --json-model-override-args '{"num_hiden_layers": 2}'
grep -q 'no "num_hiden_layers".*is "num_hidden_layers" meant' "$work/err" || fail "an unknown name in the overrides"
run 2 "$fathom" bench $tiny --json-model-override-args '{"rope_scaling": {"faktor": 2}}'
grep -q '"faktor".*is "factor" meant' "$work/err" || fail "an unknown name inside an override"
run 2 "$fathom" bench --model-path r1 --extra-request-body '{"temperature": -1}'
grep -q -- "--extra-request-body: temperature is -1" "$work/err" || fail "--extra-request-body is looked at after loading"

# fathom-tiny can be named without a path.
run 0 "$fathom" run --quiet --model-path fathom-tiny --temperature 0 hello
grep -q "How can I help you?" "$work/out" || fail "fathom-tiny by its name"
run 2 "$fathom" run --model-path fathom-tinny hello
grep -q "no model fathom-tinny: not a directory, not fathom-tiny, " "$work/err" || fail "a wrong name does not say the right one"

# A checkout without git lfs has pointers where the weights should be.
mkdir "$work/lfs"
cp "$data/v3/config.json" "$work/lfs"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 4\n' 0 >"$work/lfs/model.safetensors"
run 2 "$fathom" bench $tiny --model-path "$work/lfs"
grep -q "model.safetensors: this is a Git LFS pointer.*git lfs pull" "$work/err" || fail "a Git LFS pointer"

# The environment gives defaults, the command line wins.
FM_PAGE_SIZE=0 run 2 "$fathom" bench --num-prompts 1
FM_RANDOM_OUTPUT_LEN=3 run 0 "$fathom" bench --model r1-mini --json-model-override-args "$small_shape" \
    --quiet --dataset-name random --random-range-ratio 1 --random-input-len 8 --num-prompts 1
grep -q "Total generated tokens: *3 " "$work/out" || fail "FM_RANDOM_OUTPUT_LEN"

# In this arithmetic no GPU will do, whatever the machine and the build have.
FM_LOG=info bench 0 --device auto --dtype float32
grep -q "device=cpu, no GPU: " "$work/err" || fail "--device auto does not say why it is the CPU"
for words in "--device cuda" "--shadow"; do
    bench 2 $words --dtype float32
    grep -q "^fathom bench: $words: " "$work/err" || fail "$words without a GPU"
    case $("$fathom" --version) in
    *CUDA*none* | *CUDA*"not built"* | *CUDA*" no"*)
        grep -q "this fathom was built without CUDA and computes on the CPU alone" "$work/err" || fail "$words: no reason" ;;
    esac
done
