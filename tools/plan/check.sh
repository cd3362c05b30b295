#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fathom plan against measurement, on this machine: twelve jobs of r1-mini that calibration has not
# seen, each predicted once and measured three times.  Prints a table with the machine's own spread.
#
#     tools/plan/check.sh FATHOM [calibrate] [JOB...]        jobs by name or number; default all
#     TABLE=t.json REPEAT=3 tools/plan/check.sh build/fathom calibrate 1 2 3
#     MODEL=v2-lite SCALE=16 TABLE=tuned/h200.json tools/plan/check.sh build/fathom 1 2 3 4 5 6 7 8 9     a GPU
#
# MODEL is another model, SCALE times as many prompts, FLAGS further options of the engine.
# With `calibrate` the table of costs is measured first, into TABLE.  Offline jobs are compared by
# total token throughput, online ones (a server, requests that arrive one by one) by the mean time
# per token.  Have the machine to yourself.
set -eu
fathom=$(realpath "$1")
shift
table=$(realpath -m "${TABLE:-plan-check.json}")
repeat=${REPEAT:-3}
model=${MODEL:-r1-mini}
scale=${SCALE:-1}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

random() { echo "--dataset-name random --num-prompts $(($1 * scale)) --random-input-len $2 --random-output-len $3 --random-range-ratio ${4:-1}"; }
shared() { echo "--dataset-name generated-shared-prefix --gsp-num-groups $(($1 * scale)) --gsp-prompts-per-group $2 --gsp-system-prompt-len $3 --gsp-question-len $4 --gsp-output-len $5"; }

jobs=(
    "offline-48    offline $(random 48 128 32)"
    "offline-96    offline $(random 96 64 48 0.5)"
    "sharegpt-like offline --dataset-name synthetic --num-prompts $((12 * scale))"
    "long-1000     offline $(random 8 1000 48)"
    "long-3000     offline $(random 4 3000 16)"
    "prefix-4x8    offline $(shared 4 8 512 64 32)"
    "prefix-2x24   offline $(shared 2 24 256 32 24)"
    "online-3      online  $(random 20 128 24) --request-rate $((3 * scale))"
    "online-8      online  $(random 40 64 24) --request-rate $((8 * scale)) --max-concurrency $((16 * scale))"
    "tp2           offline $(random 64 96 24) --tp-size 2"
    "pp2           offline $(random 64 96 24) --pp-size 2"
    "dp2           offline $(random 64 96 24) --dp-size 2"
)

number() { python3 -c 'import json,sys; print(json.loads(sys.stdin.readlines()[-1])[sys.argv[1]])' "$1" <"$2"; }

# What is predicted, and each measurement, in tok/s or ms.
predict()
{
    sizes=
    case " $2 " in *-size*) ;; *) sizes="--tp-size 1 --pp-size 1 --dp-size 1" ;; esac
    # shellcheck disable=SC2086
    "$fathom" plan --machine "$table" --model-path "$model" ${FLAGS:-} $2 $sizes --json >plan.json 2>plan.err || { cat plan.err >&2; exit 1; }
    python3 -c 'import json,sys; print(json.load(open("plan.json"))[sys.argv[1]])' "$1"
}

measure_offline()
{
    rm -f result.json
    # shellcheck disable=SC2086
    "$fathom" bench --quiet --skip-warmup --model-path "$model" ${FLAGS:-} $1 --result-filename result.json >bench.out 2>&1 || { cat bench.out >&2; exit 1; }
    number total_throughput result.json
}

measure_online()
{
    port=$((20000 + RANDOM % 20000))
    # shellcheck disable=SC2086
    "$fathom" serve --quiet --model-path "$model" ${FLAGS:-} --port $port >serve.out 2>&1 &
    server=$!
    for _ in $(seq 300); do curl -sf "http://127.0.0.1:$port/health" >/dev/null && break || sleep 0.2; done
    for _ in $(seq "$repeat"); do
        rm -f result.json
        # shellcheck disable=SC2086
        "$fathom" bench --quiet --base-url http://127.0.0.1:$port --flush-cache $1 --result-filename result.json >bench.out 2>&1 || { cat bench.out >&2; exit 1; }
        number mean_tpot_ms result.json
    done
    kill $server
    wait $server || true
    server=
}

if [ "${1:-}" = calibrate ]; then
    shift
    # shellcheck disable=SC2086
    "$fathom" plan --calibrate --quiet --model-path "$model" ${FLAGS:-} --write-table "$table"
fi
[ -s "$table" ] || { echo "there is no $table: check.sh FATHOM calibrate" >&2; exit 2; }

printf '%-14s %12s %12s %9s %9s\n' job predicted measured error spread
index=0
for job in "${jobs[@]}"; do
    index=$((index + 1))
    read -r name kind flags <<<"$job"
    case " ${*:-all} " in *" all "* | *" $name "* | *" $index "*) ;; *) continue ;; esac
    if [ "$kind" = offline ]; then
        predicted=$(predict total_token_throughput "$flags")
        measured=$(for _ in $(seq "$repeat"); do measure_offline "$flags"; done)
    else
        predicted=$(predict mean_tpot_ms "$flags")
        measured=$(measure_online "$flags")
    fi
    echo "$name $predicted" $measured
done | tee rows | python3 -c '
import sys
for line in sys.stdin:
    name, predicted, *measured = line.split()
    x = sorted(map(float, measured)); p = float(predicted); m = x[len(x) // 2]
    print("%-14s %12.1f %12.1f %+8.1f%% %8.1f%%" % (name, p, m, 100 * (p / m - 1), 100 * (x[-1] - x[0]) / m), flush=True)
'
python3 -c '
import sys
errors = []
for line in open("rows"):
    name, predicted, *measured = line.split()
    x = sorted(map(float, measured)); errors.append(abs(float(predicted) / x[len(x) // 2] - 1))
errors.sort()
if errors: print("%d jobs: median error %.1f%%, worst %.1f%%" % (len(errors), 100 * errors[len(errors) // 2], 100 * errors[-1]))
'
