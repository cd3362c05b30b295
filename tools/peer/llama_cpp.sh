#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom and llama.cpp on the same shape, one after the other, on an otherwise idle machine:
#
#     LLAMA_CPP=~/llama.cpp/build/bin tools/peer/llama_cpp.sh [BUILD]
#
# Both run r1-mini with random weights; ours come from the generator, theirs from a GGUF file that
# bench_peer_gguf writes once.  WEIGHTS=bf16 (the default), or q4_0 or q8_0: theirs made by
# llama-quantize, ours INT4 (every linear layer) or FP8.  llama.cpp is given the better of flash attention on and
# off.  THREADS (the cores), GGUF (where the file goes) and QUICK=1 can be set, and where time is
# short PROMPT (tokens of the prefill), BATCHES, FLASH (of "on off") and REPEAT.
set -eu

build=${1:-build}
bin=${LLAMA_CPP:?set LLAMA_CPP to the directory with llama-bench and llama-batched-bench}
threads=${THREADS:-$(lscpu -p=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)}
bf16=${GGUF:-$build/r1-mini.gguf}
weights=${WEIGHTS:-bf16}
quick=${QUICK:-0}
for tool in "$bin/llama-bench" "$bin/llama-batched-bench" "$build/fathom" "$build/bench/bench_peer_gguf"; do
    [ -x "$tool" ] || { echo "llama_cpp.sh: $tool is missing" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

if [ "$quick" = 1 ]; then prompt=256 out=8 batches=1,8; else prompt=2048 out=32 batches=1,8,32,64; fi
prompt=${PROMPT:-$prompt} batches=${BATCHES:-$batches}
crowd=${batches##*,} # the largest is last
flash=${FLASH:-on off} micro=512
[ "$prompt" -le 512 ] || micro=512,2048

fp8='{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}'
int4='{"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized",
  "config_groups": {"all": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int",
  "symmetric": true, "strategy": "group", "group_size": 32}}}}}'
case $weights in
bf16) override='{}' ;;
q8_0) override=$fp8 ;;
q4_0) override=$int4 ;;
*) echo "llama_cpp.sh: WEIGHTS is bf16, q8_0 or q4_0, not $weights" >&2; exit 2 ;;
esac

[ -s "$bf16" ] || "$build/bench/bench_peer_gguf" "$bf16" r1-mini
gguf=${bf16%.gguf}-$weights.gguf
[ "$weights" != bf16 ] || gguf=$bf16
[ -s "$gguf" ] || "$bin/llama-quantize" "$bf16" "$gguf" "$weights" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 2; }

# field NAME: the numbers of that name, one per JSON line
field() { sed -n "s/.*\"$1\": *\([0-9.eE+-]*\).*/\1/p"; }
most() { sort -g | tail -n 1; }

# theirs_batched on|off: flash attention so; one JSON line per batch size
theirs_batched()
{
    "$bin/llama-batched-bench" -m "$gguf" -t "$threads" -c $((crowd * (128 + out) + 512)) -b 2048 -ub 512 \
        -npp 128 -ntg "$out" -npl "$batches" -fa "$1" --output-format jsonl 2>"$work/log" | grep '^{'
}

ours()
{
    "$build/fathom" bench --model-path r1-mini --json-model-override-args "$override" --threads "$threads" --quiet "$@" \
        >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 2; }
}

row() { awk -v n="$1" -v a="$2" -v b="$3" \
    'BEGIN { printf "%-34s %10.1f %10.1f %8.1fx\n", n, a, b, b ? a / b : 0 }'; }

# batch N NAME: the better of both runs at that batch size
batch() { grep "\"pl\": $1," "$work/batched" | field "$2" | most; }

echo "r1-mini, $weights, $threads threads, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
    "load $(cut -d' ' -f1 /proc/loadavg) at the start"
printf '%-34s %10s %10s %9s\n' "tok/s" fathom llama.cpp ratio

ours --batch-size 1 --input-len "$prompt" --output-len 1 --result-filename "$work/prefill"
theirs_prefill=$("$bin/llama-bench" -m "$gguf" -t "$threads" -p "$prompt" -n 0 -r "${REPEAT:-2}" -ub $micro \
    -fa "$(echo "$flash" | sed 's/on/1/; s/off/0/; s/ /,/')" -o jsonl 2>"$work/log" | field avg_ts | most)
row "prefill of $prompt" "$(field prefill_throughput <"$work/prefill")" "$theirs_prefill"

ours --batch-size "$batches" --input-len 128 --output-len $out --result-filename "$work/decode"
for how in $flash; do theirs_batched "$how" || true; done >"$work/batched"
[ -s "$work/batched" ] || { cat "$work/log" >&2; exit 2; }
for b in $(echo "$batches" | tr , ' '); do
    row "decode, batch $b" "$(grep "\"batch_size\": $b," "$work/decode" | field median_decode_throughput)" \
        "$(batch "$b" speed_tg)"
done

ours --dataset-name random --random-input-len 128 --random-output-len $out --random-range-ratio 1 \
    --num-prompts "$crowd" --result-filename "$work/offline"
row "offline, $crowd x 128 in / $out out" "$(field total_throughput <"$work/offline")" "$(batch "$crowd" speed)"
