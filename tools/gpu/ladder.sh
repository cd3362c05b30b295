#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What each variant of a CUDA kernel gains: the same job with all variants and without one
# (FM_CUDA_LEAVE_OUT, src/llm/kernel/cuda/variants.h), on a GPU, in about two minutes.
#
#     tools/gpu/ladder.sh FATHOM [VARIANT...]                 default: all
#
# Prints, for a job in which the variant is chosen, the time of the operations that it changes (the
# sum of their medians in a layer with experts) and the tokens per second of the whole pass, with
# and without it; the latter in a run that records no trace.  Dummy weights; V2-Lite in BF16, R1's first 13 layers in FP8.
set -eu
fathom=$(realpath "$1")
shift
wanted=${*:-all}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# variant, model, batch, input tokens, phase, operations that change
jobs="
attend_few     v2-lite 1   500  decode  attend
attend_two     r1      256 500  decode  attend
attend_boxes   r1      256 500  decode  attend
expanded_wide  v2-lite 1   4096 prefill attend
linear_wide    v2-lite 1   500  decode  linear
linear_tiles   v2-lite 16  500  decode  linear
linear_two     v2-lite 1   500  decode  linear|rope|store
linear_two     v2-lite 16  500  decode  linear|rope|store
linear_128x256 r1-off  256 500  decode  linear
route_few      v2-lite 1   500  decode  route|experts
sort_two       v2-lite 1   4096 prefill experts
norm_sum       v2-lite 1   500  decode  rmsnorm|gather_add|experts
norm_sum       v2-lite 256 500  decode  rmsnorm|gather_add|experts
side           v2-lite 1   500  decode  mlp|experts
experts_8      v2-lite 32  500  decode  experts
experts_8      r1      64  500  decode  experts
experts_8      r1      128 500  decode  experts
experts_16     v2-lite 64  500  decode  experts
experts_16     r1      256 500  decode  experts
experts_32     v2-lite 128 500  decode  experts
experts_256    v2-lite 1   4096 prefill experts
"

model() # model NAME: options
{
    case $1 in
    v2-lite) echo "--model v2-lite" ;;
    r1) echo "--model r1 --json-model-override-args {\"num_hidden_layers\":13}" ;;
    r1-off) echo "--model r1 --json-model-override-args {\"num_hidden_layers\":13} --fp8-activations off" ;;
    esac
}

run() # run LEFT-OUT MODEL BATCH INPUT OUTPUT TO [OPTION...]
{
    out=$1 shape=$2 batch=$3 in=$4 tokens=$5 to=$6
    shift 6
    # shellcheck disable=SC2046
    FM_CUDA_LEAVE_OUT=$out "$fathom" bench --device cuda $(model "$shape") --load-format dummy --batch-size "$batch,$batch" \
        --input-len "$in" --output-len "$tokens" "$@" >"$to" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
}

# measure LEFT-OUT MODEL BATCH INPUT PHASE OPERATIONS: "us of the operations in a layer, tok/s"
measure()
{
    file=$work/$(echo "$1 $2 $3 $4" | tr ' ' _)
    output=64 column=7
    [ "$5" = decode ] || output=1 column=5
    if [ ! -s "$file.out" ]; then
        run "$1" "$2" "$3" "$4" $output "$file.out"
        run "$1" "$2" "$3" "$4" $output /dev/null --trace "$file.trace"
        "$fathom" trace "$file.trace" --rates none --json >"$file.json"
        rm -f "$file.trace"
    fi
    rate=$(awk -v b="$3" -v c=$column '$1 == b && NF >= 9 { rate = $c } END { print rate }' "$file.out")
    python3 - "$file.json" "$6" <<'PY'
import json, re, sys
keys = json.load(open(sys.argv[1]))["keys"]
ops = [k for k in keys if k["class"] == "op" and k["part"] in ("moe", "") and re.match(sys.argv[2], k["name"])]
print("%.2f" % (1e6 * sum(k["p50_s"] for k in ops)), end=" ")
PY
    echo "$rate"
}

printf '%-15s %-8s %5s %6s  %-22s %12s %12s %6s %10s %10s %6s\n' variant model batch input operations \
    'us with' 'us without' gain 'tok/s with' without gain
echo "$jobs" | while read -r variant model batch input phase ops; do
    [ -n "$variant" ] || continue
    case " $wanted " in *" all "* | *" $variant "*) ;; *) continue ;; esac
    with=$(measure "" "$model" "$batch" "$input" "$phase" "$ops")
    without=$(measure "$variant" "$model" "$batch" "$input" "$phase" "$ops")
    echo "$variant $model $batch $input $ops $with $without" | awk '{
        printf "%-15s %-8s %5d %6d  %-22s %12.2f %12.2f %5.1f%% %10.0f %10.0f %5.1f%%\n", $1, $2, $3, $4, $5, $6, $8,
            100 * ($6 > 0 ? $8 / $6 - 1 : 0), $7, $9, 100 * ($9 > 0 ? $7 / $9 - 1 : 0) }'
done
