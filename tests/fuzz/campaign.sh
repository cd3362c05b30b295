#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every target for a share of HOURS, by turns, and adds to what earlier campaigns found:
#
#     tests/fuzz/campaign.sh HOURS [BUILD]          BUILD: build-fuzz; needs clang
#
# A turn runs one target on its corpus, then minimises the corpus (inputs that reach nothing new
# are dropped).  Corpora, faults and counts are kept in BUILD/campaign; the committed corpora are
# read and never written.  Ends with a table and, where llvm-cov is, a coverage report per target
# in BUILD/campaign/coverage.  The exit status is 1 when a fault was found.
#
# TARGETS="http_head:40 deck" takes these alone, in this order, a turn of http_head being 40 seconds;
# TURN=60 sets the seconds of the other turns.
set -eu

hours=${1:?how many hours, for example 0.5}
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${2:-$root/build-fuzz}
turn=${TURN:-60}
state=$build/campaign
wanted=$(for t in ${TARGETS:-}; do echo "fuzz_${t%:*}"; done)
mkdir -p "$state"

CC=clang cmake -G Ninja -S "$root" -B "$build" -DFM_FUZZ=ON -DFM_CUDA=OFF -DFM_EMULATOR=OFF \
    -DFM_SANITIZE="fuzzer-no-link;address;undefined" >"$state/log" 2>&1 &&
    cmake --build "$build" --target ${wanted:-fuzz_targets} >"$state/log" 2>&1 || { tail -20 "$state/log" >&2; exit 2; }
turns=${TARGETS:-$(cd "$build/tests/fuzz" && ls -d fuzz_* | sed -n 's/^fuzz_\([a-z0-9_]*\)$/\1/p')}
targets=$(for t in $turns; do echo "${t%:*}"; done | sort -u)

number() { sed -n "s/^stat::$1: *\([0-9]*\).*/\1/p" "$2"; }
count() { cat "$state/$1.$2" 2>/dev/null || echo 0; }
add() { echo $(($(count "$1" "$2") + $3)) >"$state/$1.$2"; }

# is_fault NAME: what ended its turn happens again; a timeout on a machine that was busy does not
is_fault()
{
    for found in "$state/faults/$1"-timeout-*; do
        [ -e "$found" ] || return 0
        "$build/tests/fuzz/fuzz_$1" -timeout=10 "$found" >/dev/null 2>&1 || return 0
        rm "$found"
    done
    [ -n "$(find "$state/faults" -name "$1-*" ! -name '*-slow-unit-*')" ]
}

# one_turn NAME SECONDS: fuzz, count, minimise
one_turn()
{
    corpus=$state/corpus/$1 less=$state/corpus/$1.less
    mkdir -p "$corpus" "$state/faults"
    cp -R "$root/tests/fuzz/corpus/$1"/. "$corpus" 2>/dev/null || true
    began=$(date +%s)
    "$build/tests/fuzz/fuzz_$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$state/faults/$1-" "$corpus" >"$state/$1.log" 2>&1 || ! is_fault "$1" || add "$1" faults 1
    add "$1" seconds $(($(date +%s) - began))
    add "$1" executed "$(number number_of_executed_units "$state/$1.log" | grep . || echo 0)"
    sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$state/$1.log" | tail -n 1 >"$state/$1.edges"
    rm -rf "$less" && mkdir "$less"
    "$build/tests/fuzz/fuzz_$1" -merge=1 -rss_limit_mb=2048 "$less" "$corpus" >"$state/$1.log" 2>&1 &&
        rm -rf "$corpus" && mv "$less" "$corpus" || rm -rf "$less"
}

# coverage NAME: lines of src that the corpus reaches, from a build that counts them
coverage()
{
    command -v llvm-cov-14 >/dev/null && command -v llvm-profdata-14 >/dev/null || return 0
    binary=$build-coverage/tests/fuzz/fuzz_$1 to=$state/coverage
    mkdir -p "$to"
    LLVM_PROFILE_FILE=$to/$1.raw "$binary" -runs=0 "$state/corpus/$1" >"$state/log" 2>&1 || return 0
    llvm-profdata-14 merge -sparse "$to/$1.raw" -o "$to/$1.data"
    llvm-cov-14 report "$binary" -instr-profile="$to/$1.data" "$root/src" >"$to/$1.txt"
    rm -f "$to/$1.raw"
}

build_coverage()
{
    command -v llvm-cov-14 >/dev/null || { echo "no llvm-cov-14: no coverage report" >&2; return 0; }
    CC=clang CFLAGS="-fprofile-instr-generate -fcoverage-mapping" LDFLAGS=-fprofile-instr-generate \
        cmake -G Ninja -S "$root" -B "$build-coverage" -DFM_FUZZ=ON -DFM_CUDA=OFF -DFM_EMULATOR=OFF \
        -DFM_SANITIZE="fuzzer-no-link" >"$state/log" 2>&1 &&
        cmake --build "$build-coverage" --target fuzz_targets >"$state/log" 2>&1 || tail -20 "$state/log" >&2
}

end=$(awk -v h="$hours" -v now="$(date +%s)" 'BEGIN { printf "%d", now + h * 3600 }')
while [ "$(date +%s)" -lt "$end" ]; do
    for t in $turns; do
        [ "$(date +%s)" -lt "$end" ] || break
        case $t in *:*) one_turn "${t%:*}" "${t#*:}" ;; *) one_turn "$t" "$turn" ;; esac
    done
done

build_coverage
total=0 faults=0
printf '%-14s %14s %10s %8s %8s %8s\n' target executions "each s" inputs edges faults
for name in $targets; do
    coverage "$name"
    n=$(count "$name" executed) s=$(count "$name" seconds) f=$(count "$name" faults)
    printf '%-14s %14d %10d %8d %8d %8d\n' "$name" "$n" $((n / (s ? s : 1))) \
        "$(find "$state/corpus/$name" -type f 2>/dev/null | wc -l)" "$(count "$name" edges)" "$f"
    total=$((total + n)) faults=$((faults + f))
done
printf '%-14s %14d %37d\n' all "$total" "$faults"
[ "$faults" -eq 0 ]
