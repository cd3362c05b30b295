#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fathom plan against measurement, on this machine: jobs that calibration has not seen, each
# predicted once and measured three times.  Prints a table with the machine's own spread.
#
#     tools/plan/check.sh FATHOM [h200] [calibrate] [JOB...]     jobs by name or number; default all
#     TABLE=t.json tools/plan/check.sh build/fathom calibrate                twelve jobs, a CPU
#     TABLE=tuned/h200.json tools/plan/check.sh build-gpu/fathom h200        ten jobs, one H200
#
# REPEAT is how often each job is measured (3), MODEL another model for the CPU's jobs, SCALE times
# as many prompts of them, FLAGS further options of the engine.  With `calibrate` the table of costs
# is measured first, into TABLE.  Offline jobs are compared by total token throughput, online ones
# (a server, requests that arrive one by one) by the mean time per token.  KEEP=DIR keeps what plan
# and bench wrote.  Have the machine to yourself.
set -euo pipefail
fathom=$(realpath "$1")
shift
table=$(realpath -m "${TABLE:-plan-check.json}")
repeat=${REPEAT:-3}
scale=${SCALE:-1}
keep=${KEEP:+$(mkdir -p "$KEEP" && realpath "$KEEP")}
mini="--model-path ${MODEL:-r1-mini}"
lite="--model-path v2-lite"
r1='--model-path r1 --json-model-override-args {"num_hidden_layers":13}'
list=cpu_jobs
models=("$mini")
if [ "${1:-}" = h200 ]; then
    shift
    list=h200_jobs
    scale=1
    models=("$lite" "$r1")
fi
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

random() { echo "--dataset-name random --num-prompts $(($1 * scale)) --random-input-len $2 --random-output-len $3 --random-range-ratio ${4:-1}"; }
shared() { echo "--dataset-name generated-shared-prefix --gsp-num-groups $(($1 * scale)) --gsp-prompts-per-group $2 --gsp-system-prompt-len $3 --gsp-question-len $4 --gsp-output-len $5"; }

# Requests of so many tokens a second that the machine is busy for this share of the time: near
# saturation latencies say more about queues than about steps.
rate() { python3 -c 'import sys; s, c, n = map(float, sys.argv[1:]); print(round(s * c / n, 2))' "$1" "$capacity" "$2"; }

cpu_jobs()
{
    name=capacity
    capacity=$(predict total_token_throughput "$mini $(random 48 128 32)")
    cat <<END
offline-48    offline $mini $(random 48 128 32)
offline-96    offline $mini $(random 96 64 48 0.5)
sharegpt-like offline $mini --dataset-name synthetic --num-prompts $((12 * scale))
long-1000     offline $mini $(random 8 1000 48)
long-3000     offline $mini $(random 4 3000 16)
prefix-4x8    offline $mini $(shared 4 8 512 64 32)
prefix-2x24   offline $mini $(shared 2 24 256 32 24)
online-light  online  $mini $(random 20 128 24) --request-rate $(rate 0.35 152)
online-busy   online  $mini $(random 40 64 24) --request-rate $(rate 0.6 88) --max-concurrency $((16 * scale))
tp2           offline $mini $(random 64 96 24) --tp-size 2
pp2           offline $mini $(random 64 96 24) --pp-size 2
dp2           offline $mini $(random 64 96 24) --dp-size 2
END
}

# V2-Lite, and of R1 the 13 layers in FP8 that fit one card.  Every job takes some seconds: graphs
# are recorded in the first steps of each size.
h200_jobs()
{
    cat <<END
lite-offline  offline $lite $(random 1200 128 32)
lite-uneven   offline $lite $(random 1200 64 48 0.5)
lite-sharegpt offline $lite --dataset-name synthetic --num-prompts 300
lite-long     offline $lite $(random 64 3000 16)
lite-prefix   offline $lite $(shared 64 16 1024 64 32)
lite-online   online  $lite $(random 160 128 48) --request-rate 60
lite-busy     online  $lite $(random 480 64 48) --request-rate 240 --max-concurrency 96
r1-offline    offline $r1 $(random 320 128 48)
r1-sharegpt   offline $r1 --dataset-name synthetic --num-prompts 64
r1-long       offline $r1 $(random 40 2000 32)
END
}

number() { python3 -c 'import json,sys; print(json.loads(sys.stdin.readlines()[-1])[sys.argv[1]])' "$1" <"$2"; }

await() # a server that answers
{
    python3 -c '
import sys, time, urllib.request
for _ in range(300):
    try: sys.exit(urllib.request.urlopen(sys.argv[1], timeout=2).status != 200)
    except OSError: time.sleep(0.2)
sys.exit(1)' "$1"
}

# What is predicted, and each measurement, in tok/s or ms.
predict()
{
    sizes= # plan would search those that are not given
    for size in tp pp dp ep; do
        case " $2 " in *" --$size-size "*) ;; *) sizes="$sizes --$size-size 1" ;; esac
    done
    # shellcheck disable=SC2086
    "$fathom" plan --machine "$table" ${FLAGS:-} $2 $sizes --json >plan.json 2>plan.err || { cat plan.err >&2; exit 1; }
    [ -z "$keep" ] || cp plan.json "$keep/$name.plan.json"
    python3 -c 'import json,sys; print(json.load(open("plan.json"))[sys.argv[1]])' "$1"
}

measure_offline()
{
    rm -f result.json
    # shellcheck disable=SC2086
    "$fathom" bench --quiet $warmup ${FLAGS:-} $1 --result-filename result.json >bench.out 2>&1 || { cat bench.out >&2; exit 1; }
    [ -z "$keep" ] || cat result.json >>"$keep/$name.bench.json"
    number total_throughput result.json
}

measure_online()
{
    port=$((20000 + RANDOM % 20000))
    # shellcheck disable=SC2086
    "$fathom" serve --quiet ${FLAGS:-} $1 --port $port >serve.out 2>&1 &
    server=$!
    await "http://127.0.0.1:$port/health" || { cat serve.out >&2; exit 1; }
    for _ in $(seq "$repeat"); do
        rm -f result.json
        # shellcheck disable=SC2086
        "$fathom" bench --quiet --base-url http://127.0.0.1:$port --flush-cache $2 --result-filename result.json >bench.out 2>&1 || { cat bench.out >&2; exit 1; }
        [ -z "$keep" ] || cat result.json >>"$keep/$name.bench.json"
        number mean_tpot_ms result.json
    done
    kill $server
    wait $server || true
    server=
}

if [ "${1:-}" = calibrate ]; then
    shift
    for m in "${models[@]}"; do
        [ ! -s "$table" ] || [ $list = cpu_jobs ] || begin="--machine $table"
        # shellcheck disable=SC2086
        "$fathom" plan --calibrate --quiet ${begin:-} $m ${FLAGS:-} --write-table "$table"
    done
fi
[ -s "$table" ] || { echo "there is no $table: check.sh FATHOM calibrate" >&2; exit 2; }

# A GPU's first steps load kernels; a CPU's are like the others.
warmup=$([ $list = h200_jobs ] || echo --skip-warmup)

printf '%-14s %12s %12s %9s %9s\n' job predicted measured error spread
mapfile -t jobs < <($list)
index=0
for job in "${jobs[@]}"; do
    index=$((index + 1))
    read -r name kind path model rest <<<"$job"
    case " ${*:-all} " in *" all "* | *" $name "* | *" $index "*) ;; *) continue ;; esac
    model="$path $model"
    case $rest in --json-model-override-args*) read -r option value rest <<<"$rest" && model="$model $option $value" ;; esac
    if [ "$kind" = offline ]; then
        predicted=$(predict total_token_throughput "$model $rest")
        measured=$(for _ in $(seq "$repeat"); do measure_offline "$model $rest"; done)
    else
        predicted=$(predict mean_tpot_ms "$model $rest")
        measured=$(measure_online "$model" "$rest")
    fi
    # shellcheck disable=SC2086
    echo "$name $predicted" $measured
done | tee rows | python3 -c '
import sys
for line in sys.stdin:
    name, predicted, *measured = line.split()
    x = sorted(map(float, measured)); p = float(predicted); m = x[len(x) // 2]
    print("%-14s %12.1f %12.1f %+8.1f%% %8.1f%%" % (name, p, m, 100 * (p / m - 1), 100 * (x[-1] - x[0]) / m), flush=True)
'
[ -z "$keep" ] || cp rows "$keep/rows"

# Layouts of one workload are compared with each other, too.
python3 -c '
import statistics
jobs = {}
for line in open("rows"):
    name, predicted, *measured = line.split()
    jobs[name] = float(predicted), statistics.median(map(float, measured))
errors = [abs(p / m - 1) for p, m in jobs.values()]
if errors: print("%d jobs: median error %.1f%%, worst %.1f%%" % (len(errors), 100 * statistics.median(errors), 100 * max(errors)))
layouts = [n for n in jobs if n in ("tp2", "pp2", "dp2")]
if len(layouts) > 1: print("order predicted: %s; measured: %s" % tuple(" > ".join(sorted(layouts, key=lambda n: -jobs[n][i])) for i in (0, 1)))
'
