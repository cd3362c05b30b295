#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All tests and measurements for a machine with a GPU, in one command:
#
#     tools/gpu/run.sh OUT [PART...]
#
#     tests      every kernel and whole small models against their definitions
#     sanitizer  a few of them under compute-sanitizer's memcheck and racecheck
#     bench      limits of the GPU, kernels, whole models
#     engine     fathom itself: one batch, many requests, the first token
#     shadow     fathom-tiny on CPU and GPU, compared op by op
#     trace      what recording ops costs, and what a trace says of V2-Lite
#     ranks      2 and 4 ranks that share the GPU answer as one does (ranks.sh)
#     doctor     what fathom doctor says of the GPU, and of NCCL (doctor.sh)
#
# Programs come from build-gpu (make gpu-bundle), or from FM_GPU_BIN.  OUT gets
# tests.log, sanitizer.log, bench.log, bench.json, bench.md, engine.log, shadow.log, trace.log, ranks.log,
# doctor.log and summary.txt.  Each part has a time of its own (FM_TESTS_S, FM_SANITIZER_S, FM_BENCH_S,
# FM_ENGINE_S, FM_SHADOW_S, FM_TRACE_S, FM_RANKS_S) and runs whatever the others did.  0: all went well.
set -u
if [ $# -lt 1 ]; then
    echo "usage: $0 OUT [tests] [sanitizer] [bench] [engine] [shadow] [trace] [ranks] [doctor]" >&2
    exit 2
fi
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
shift
parts=${*:-tests sanitizer bench engine shadow trace ranks doctor}
cd "$(dirname "$0")/../.." || exit 2
bin=${FM_GPU_BIN:-build-gpu}
case $bin in /*) ;; *) bin=$PWD/$bin ;; esac

# Files of tests, as fathom-test-gpu --list names them, or single tests, that are worth a slow
# look: TOOL:NAME, the slowest first, so that the last ones to end are short.  racecheck does not
# follow mbarriers between plain stores and loads, by which the scales of 8-bit tokens reach more
# than 32 heads: those tests are left out.
sanitized="racecheck:absorbed_numbers_of_heads racecheck:absorbed_long_parts
           racecheck:absorbed_8_bit_cache_of_other_widths
           racecheck:linear_wide.cu racecheck:experts.cu racecheck:dummy_bf16 racecheck:sample.cu
           racecheck:mla_expanded.cu racecheck:linear.cu racecheck:experts_routed.cu
           racecheck:route.cu racecheck:rows.cu racecheck:rows_cache.cu memcheck:mla_absorbed.cu
           memcheck:linear_wide.cu memcheck:linear.cu memcheck:v3_checkpoint memcheck:mla_expanded.cu
           memcheck:experts.cu memcheck:experts_routed.cu memcheck:dummy_bf16 memcheck:dummy_fp8
           memcheck:sample.cu memcheck:route.cu memcheck:rows_cache.cu memcheck:dummy.cu"

export FM_TEST_DATA="${FM_TEST_DATA:-$PWD/tests/data}"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS="${OMP_NUM_THREADS:-8}"
: >"$out/summary.txt"
failed=0

say() # to people, and into the summary
{
    echo "$*" | tee -a "$out/summary.txt"
}

now()
{
    date +%s
}

missing() # libraries that programs ask for and this machine lacks
{
    for program in fathom fathom-test-gpu bench_cuda; do
        ldd "$bin/$program" 2>/dev/null
    done | awk '/not found/ { print $1 }' | sort -u
}

# This machine's libraries come first: those in the bundle are older and only
# for those that are missing, and for what these miss in turn.
lend_libraries()
{
    for _ in 1 2 3; do
        for name in $(missing); do
            [ ! -e "$bin/lib/$name" ] || ln -sf "$bin/lib/$name" "$lent/$name"
        done
    done
    # CUDA's own may lie with the toolkit or in a Python package.
    ldconfig -p 2>/dev/null | grep -q 'libcublasLt.so.13' && return
    found=$(ls -d /usr/local/cuda*/lib64/libcublasLt.so.13 2>/dev/null | head -1)
    [ -n "$found" ] || found=$(timeout 30 find /usr/local /opt /usr/lib /root \
        -name 'libcublasLt.so.13*' 2>/dev/null | head -1)
    if [ -z "$found" ]; then
        say "libcublasLt.so.13 was not found on this machine"
    else
        LD_LIBRARY_PATH=$(dirname "$found"):$LD_LIBRARY_PATH
    fi
}

verdict() # verdict PART STATUS BEGAN TEXT
{
    if [ "$2" -eq 0 ]; then word=ok; else word=FAILED failed=1; fi
    say "$1: $word, $(($(now) - $3)) s: $4"
}

# A file at a time, so that an error that ends one leaves the others.
run_tests()
{
    began=$(now) bad="" n=0 rc=0
    : >"$out/tests.log"
    files=$("$bin/fathom-test-gpu" --list 2>>"$out/tests.log" | cut -d: -f1 | sort -u)
    for file in $files; do
        left=$((${FM_TESTS_S:-120} - $(now) + began))
        [ "$left" -gt 0 ] || left=1
        [ "$left" -lt 60 ] || left=60
        timeout -k 5 "$left" "$bin/fathom-test-gpu" "/$file" >>"$out/tests.log" 2>&1
        rc=$?
        n=$((n + 1))
        [ $rc -eq 0 ] || { bad="$bad $file($rc)"; echo "$file ended with $rc" >>"$out/tests.log"; }
        [ $rc -ne 2 ] || break # no GPU
    done
    grep -E '^(FAILED|  )' "$out/tests.log" | head -30 | tee -a "$out/summary.txt"
    [ -n "$files" ] && [ -z "$bad" ]
    good=$?
    passed=$(grep -c '^ok ' "$out/tests.log")
    wrong=$(grep -c '^FAILED' "$out/tests.log")
    verdict tests $good "$began" "$passed passed, $wrong failed in $n files${bad:+;$bad}"
}

sanitize() # sanitize TOOL NAME LOG: one file of tests; LOG.status gets its end
{
    left=$((${FM_SANITIZER_S:-300} - $(now) + began))
    [ "$left" -gt 0 ] || { echo 124 >"$3.status"; return; }
    [ "$left" -lt 120 ] || left=120
    case $2 in *.cu) name=/$2 ;; *) name=$2 ;; esac
    start=$(now)
    timeout -k 5 "$left" compute-sanitizer --tool "$1" --error-exitcode 9 --print-limit 5 \
        "$bin/fathom-test-gpu" "$name" >"$3" 2>&1
    echo $? >"$3.status"
    echo "took $(($(now) - start)) s" >>"$3"
}

sanitize_what_is_left() # run by two processes: the one that creates a test's folder runs the test
{
    for what in $sanitized; do
        mkdir "$logs/$what.taken" 2>/dev/null || continue
        sanitize "${what%%:*}" "${what#*:}" "$logs/$what"
    done
}

# Two at a time: the tools keep a core of the host busier than the GPU.
run_sanitizer()
{
    began=$(now) bad="" skipped="" good=0 logs=$(mktemp -d)
    if ! command -v compute-sanitizer >/dev/null; then
        verdict sanitizer 1 "$began" "compute-sanitizer is not on the PATH"
        return
    fi
    sanitize_what_is_left &
    sanitize_what_is_left
    wait $!
    : >"$out/sanitizer.log"
    for what in $sanitized; do
        rc=$(cat "$logs/$what.status")
        { echo "== $what"; cat "$logs/$what" 2>/dev/null; } >>"$out/sanitizer.log"
        case $rc in
        0) good=$((good + 1)) ;;
        124 | 137) skipped="$skipped $what" ;;
        *) bad="$bad $what($rc)" ;;
        esac
    done
    rm -rf "$logs"
    [ -z "$bad" ]
    verdict sanitizer $? "$began" \
        "$good clean${bad:+; not clean:$bad}${skipped:+; no time for:$skipped}"
}

run_bench()
{
    began=$(now)
    timeout -k 5 "${FM_BENCH_S:-350}" "$bin/bench_cuda" --commit "$commit" \
        --json "$out/bench.json" --markdown "$out/bench.md" >"$out/bench.log" 2>&1
    rc=$?
    verdict bench $rc "$began" "$(grep -c '%$' "$out/bench.log") results with their limit"
    told='device copy|read  |cuBLASLt (bf16|e4m3)|decode|prefill|experts met|not measured|no GPU'
    grep -E "^($told)" "$out/bench.log" | tee -a "$out/summary.txt"
}

engine() # engine WORDS...: one run of fathom on the GPU, timed from outside
{
    echo "== fathom $*" >>"$out/engine.log"
    left=$((${FM_ENGINE_S:-150} - $(now) + began))
    [ "$left" -gt 0 ] || { bad="$bad $1(no-time)"; return; }
    start=$(date +%s.%N)
    timeout -k 5 "$left" "$bin/fathom" "$@" >>"$out/engine.log" 2>&1
    rc=$?
    echo "took $(echo "$start $(date +%s.%N)" | awk '{ printf "%.2f", $2 - $1 }') s" >>"$out/engine.log"
    [ $rc -eq 0 ] || bad="$bad $1($rc)"
}

run_engine()
{
    began=$(now) bad=""
    : >"$out/engine.log"
    engine run --device cuda --model-path models/fathom-tiny --temperature 0 "How many r's are in strawberry?"
    engine bench --device cuda --model v2-lite --load-format dummy --skip-warmup --num-prompts 1 \
        --dataset-name random --random-input-len 8 --random-output-len 1
    engine bench --device cuda --model v2-lite --load-format dummy \
        --batch-size 1,32,256 --input-len 500 --output-len 64
    engine bench --device cuda --model v2-lite --load-format dummy \
        --dataset-name synthetic --num-prompts 2000
    [ -z "$bad" ]
    verdict engine $? "$began" "exit codes${bad:-: all 0}"
    grep -E 'took|throughput|decode|prefill|^fathom:' "$out/engine.log" | tee -a "$out/summary.txt"
}

run_shadow()
{
    began=$(now)
    timeout -k 5 "${FM_SHADOW_S:-60}" "$bin/fathom" bench --shadow --model-path models/fathom-tiny \
        --skip-warmup --dataset-name random --random-input-len 200 --random-output-len 12 \
        --num-prompts 6 --max-total-tokens 4096 >"$out/shadow.log" 2>&1
    verdict shadow $? "$began" "$(grep -E '^fathom bench:' "$out/shadow.log" || echo 'CPU and GPU agree')"
    sed -n '/^shadow /,$p' "$out/shadow.log" | tee -a "$out/summary.txt"
}

traced() # traced NAME [OPTION...]: tokens a second of 64 requests of 1024 tokens
{
    name=$1
    shift
    left=$((${FM_TRACE_S:-90} - $(now) + began))
    [ "$left" -gt 0 ] || return 1
    timeout -k 5 "$left" "$bin/fathom" bench --device cuda --model v2-lite --load-format dummy --skip-warmup --seed 1 \
        --dataset-name random-ids --num-prompts "${FM_TRACE_PROMPTS:-64}" --random-input-len 64 --random-output-len 1024 \
        --random-range-ratio 1 "$@" >"$out/trace.run" 2>&1 || { cat "$out/trace.run" >>"$out/trace.log"; return 1; }
    echo "$name $(sed -n 's/^Output token throughput (tok\/s): *//p' "$out/trace.run")" | tee -a "$out/trace.rates"
}

run_trace()
{
    began=$(now) rc=0
    : >"$out/trace.log"
    : >"$out/trace.rates"
    for turn in off on on off off on; do
        if [ $turn = on ]; then traced on --trace "$out/v2-lite.trace"; else traced off; fi >>"$out/trace.log" || rc=1
    done
    timeout -k 5 60 "$bin/fathom" doctor --seconds 2 --rates "$out/rates.json" >>"$out/trace.log" 2>&1 || :
    rates=none
    [ ! -s "$out/rates.json" ] || rates=$out/rates.json
    "$bin/fathom" trace "$out/v2-lite.trace" --rates "$rates" >"$out/trace.txt" 2>&1 || rc=1
    cat "$out/trace.txt" >>"$out/trace.log"
    verdict trace $rc "$began" "$(awk '{ n[$1]++; sum[$1] += $2 } END { if (n["on"] && n["off"])
        printf "recording costs %.2f %% (%.0f against %.0f tok/s)", 100 * (sum["off"] / n["off"] / (sum["on"] / n["on"]) - 1),
        sum["on"] / n["on"], sum["off"] / n["off"] }' "$out/trace.rates")"
    sed -n '3,/^$/p' "$out/trace.txt" | tee -a "$out/summary.txt"
    rm -f "$out/trace.run" "$out/v2-lite.trace"
}

run_ranks()
{
    began=$(now)
    text=$(tools/gpu/ranks.sh "$bin/fathom" "$out" "${FM_RANKS_S:-200}")
    verdict ranks $? "$began" "$text"
}

run_doctor()
{
    began=$(now)
    text=$(tools/gpu/doctor.sh "$bin/fathom" "$out")
    verdict doctor $? "$began" "$text"
}

lent=$(mktemp -d)
trap 'rm -rf "$lent"' EXIT
export LD_LIBRARY_PATH="$lent:${LD_LIBRARY_PATH:-}"
lend_libraries
PATH=$PATH:/usr/local/cuda/bin
commit=$(cat "$bin/commit" 2>/dev/null || echo unknown)
say "$(date -u +%F), commit $commit, $(nvidia-smi -L 2>/dev/null | head -1 | cut -d'(' -f1)"
[ -z "$(missing)" ] || say "missing here:" $(missing)
for part in $parts; do
    case $part in
    tests) run_tests ;;
    sanitizer) run_sanitizer ;;
    bench) run_bench ;;
    engine) run_engine ;;
    shadow) run_shadow ;;
    trace) run_trace ;;
    ranks) run_ranks ;;
    doctor) run_doctor ;;
    *)
        say "there is no part $part"
        failed=1
        ;;
    esac
done
exit $failed
