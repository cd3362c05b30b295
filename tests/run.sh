#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything that is tested, on an existing build:  tests/run.sh BUILD
#     1  all tests of the build
#     2  unit, kernel and bad-input tests under AddressSanitizer and UBSan
#     3  a debug build, which aborts on any allocation inside a step
#     4  each fuzz target for a few seconds on its corpus, where clang is
# The last line counts them all; FM_FUZZ_SECONDS=60 fuzzes longer.
set -u
cd "$(dirname "$0")/.."
build=$1
root=$PWD
log=$(mktemp)
passed=0 failed=0
trap 'rm -rf "$log" "${scratch:-$log}"' EXIT

# What ctest says at its end: "97% tests passed, 2 tests failed out of 70".
count()
{
    line=$(grep "tests passed, .* failed out of" "$log" | tail -1)
    bad=$(echo "$line" | sed 's/.*passed, \([0-9]*\) test.*/\1/')
    all=$(echo "$line" | sed 's/.*out of \([0-9]*\).*/\1/')
    if [ -z "$all" ]; then failed=$((failed + 1)); return; fi
    passed=$((passed + all - bad)) failed=$((failed + bad))
}

test_build() # test_build BUILD CTEST-OPTION...
{
    dir=$1
    shift
    ctest --test-dir "$dir" --output-on-failure -j2 "$@" 2>&1 | tee "$log"
    count
}

sanitize()
{
    echo "== AddressSanitizer and UBSan"
    cmake -G Ninja -S "$root" -B "$build-asan" -DFM_SANITIZE="address;undefined" -DCMAKE_BUILD_TYPE=Debug \
        -DFM_CUDA=OFF -DFM_EMULATOR=OFF \
        >"$log" 2>&1 && cmake --build "$build-asan" >"$log" 2>&1 ||
        { tail -30 "$log"; failed=$((failed + 1)); return; }
    test_build "$build-asan" -R '^unit/|^check/|^e2e/(cli|bad_input|bench|run|verify_tokenizer|identity/dummy)$' \
        -E '^unit/chem_fock' # minutes each here; check/eri covers the kernels
}

guard()
{
    echo "== debug build: no allocation in a step"
    cmake -G Ninja -S "$root" -B "$build-debug" -DCMAKE_BUILD_TYPE=Debug -DFM_CUDA=OFF \
        -DFM_EMULATOR=OFF >"$log" 2>&1 &&
        cmake --build "$build-debug" --target test_golden_identity test_unit_base_alloc_guard >"$log" 2>&1 ||
        { tail -30 "$log"; failed=$((failed + 1)); return; }
    test_build "$build-debug" -R '^golden/identity$|^unit/base_alloc_guard$'
}

fuzz_one() # a copy of the corpus: what the fuzzer finds new stays out of the tree
{
    name=$(basename "$1")
    mkdir -p "$scratch/$name"
    cp -R "$root/tests/fuzz/corpus/${name#fuzz_}"/. "$scratch/$name" 2>/dev/null
    if (cd "$scratch" && "$1" -max_total_time="${FM_FUZZ_SECONDS:-5}" -timeout=10 -rss_limit_mb=2048 \
        -verbosity=0 -print_final_stats=1 "$scratch/$name") >"$log" 2>&1; then
        passed=$((passed + 1))
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, no fault"
    else
        failed=$((failed + 1))
        echo "$name: FAILED"
        tail -40 "$log"
        mkdir -p "$build-fuzz/found" && cp "$scratch"/crash-* "$scratch"/timeout-* "$scratch"/oom-* "$build-fuzz/found" 2>/dev/null
    fi
}

fuzz()
{
    command -v clang >/dev/null || { echo "== no clang, no fuzzing"; return; }
    echo "== fuzzing, ${FM_FUZZ_SECONDS:-5} s each"
    CC=clang cmake -G Ninja -S "$root" -B "$build-fuzz" -DFM_FUZZ=ON \
        -DFM_SANITIZE="fuzzer-no-link;address;undefined" >"$log" 2>&1 &&
        cmake --build "$build-fuzz" --target fuzz_targets >"$log" 2>&1 ||
        { tail -30 "$log"; failed=$((failed + 1)); return; }
    scratch=$(mktemp -d)
    for target in "$build-fuzz"/tests/fuzz/fuzz_*; do
        [ -x "$target" ] && [ -f "$target" ] && fuzz_one "$target"
    done
}

case $build in /*) ;; *) build=$PWD/$build ;; esac
test_build "$build" -LE '^(model|long)$'
sanitize
guard
fuzz
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
