#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything that is tested, on an existing build:  tests/run.sh BUILD
#     1  all tests of the build
#     2  unit, kernel, bad-input and router tests under AddressSanitizer and UBSan, on less input
#        (FM_TEST_BRIEF), and each fuzz target for a few seconds on its corpus, where clang is.
#        What they need is built behind 1, at the lowest priority: there tests often wait
# A test that fails beside others runs once more by itself: some have time limits that a busy machine misses.  Those that
# pass then are named and count as passed.  Tests that this machine cannot run are named at the end, each with its
# reason.  The last line counts them all; FM_FUZZ_SECONDS=60 fuzzes longer.
set -u
cd "$(dirname "$0")/.."
build=$1
root=$PWD
log=$(mktemp) built=$(mktemp) skipped=$(mktemp)
jobs=$(($(getconf _NPROCESSORS_ONLN) + 2)) # two more than processors: many tests mostly wait
passed=0 failed=0
trap 'rm -f "$log" "$built" "$skipped"' EXIT

# What ctest says at its end: "97% tests passed, 2 tests failed out of 70".  Skipped ones are among the passed.
count() # count BUILD
{
    line=$(grep "tests passed, .* failed out of" "$log" | tail -1)
    bad=$(echo "$line" | sed 's/.*passed, \([0-9]*\) test.*/\1/')
    all=$(echo "$line" | sed 's/.*out of \([0-9]*\).*/\1/')
    if [ -z "$all" ]; then failed=$((failed + 1)) bad=0; return; fi
    before=$(wc -l <"$skipped")
    skipped_tests "$1" >>"$skipped"
    passed=$((passed + all - bad - $(wc -l <"$skipped") + before)) failed=$((failed + bad))
}

# NAME: the last line it wrote
skipped_tests() # skipped_tests BUILD
{
    sed -n 's/^[[:space:]]*[0-9]* - \(.*\) (Skipped)$/\1/p' "$log" | while read -r name; do
        awk -v name="$name" '/^[0-9]+\/[0-9]+ Testing: / { inside = $3 == name }
                             /^<end of output>$/ { inside = 0 }
                             inside && NF && !/^-+$/ { last = $0 }
                             END { print "skipped: " name ": " last }' "$1/Testing/Temporary/LastTest.log"
    done
}

test_build() # test_build BUILD CTEST-OPTION...
{
    dir=$1
    shift
    ctest --test-dir "$dir" --output-on-failure -j"$jobs" "$@" 2>&1 | tee "$log"
    count "$dir"
    [ "$bad" = 0 ] || run_again "$dir"
}

run_again() # run_again BUILD
{
    echo "== once more, one after the other: the $bad that failed"
    first=$bad
    ctest --test-dir "$1" --output-on-failure --rerun-failed 2>&1 | tee "$log"
    bad=$(grep "tests passed, .* failed out of" "$log" | tail -1 | sed 's/.*passed, \([0-9]*\) test.*/\1/')
    [ -n "$bad" ] || return
    passed=$((passed + first - bad)) failed=$((failed - first + bad))
    grep ' Passed ' "$log" | sed 's/.*: \([^ ]*\) .*/passed only by itself: \1/'
}

# Clang's sanitizers, whose build the fuzz targets share; without clang the usual compiler's.
choose_sanitizers()
{
    if command -v clang >/dev/null; then
        tree=$build-fuzz compiler=clang sanitizers="fuzzer-no-link;address;undefined" fuzz=ON
        targets="unit_tests fathom_app fuzz_targets"
    else
        tree=$build-asan compiler=${CC:-cc} sanitizers="address;undefined" fuzz=OFF
        targets="unit_tests fathom_app"
    fi
}

build_sanitized()
{
    CC=$compiler nice -n 19 cmake -G Ninja -S "$root" -B "$tree" -DFM_FUZZ=$fuzz -DFM_SANITIZE="$sanitizers" \
        -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g1" -DFM_CUDA=OFF -DFM_EMULATOR=OFF -DFM_TESTS=ON &&
        nice -n 19 cmake --build "$tree" --target $targets
}

# Left out are tests of code that others run here, too: chem_fock@ISA repeats chem_fock, and tune_bars takes minutes for
# what tune_search does.
test_sanitized()
{
    echo "== AddressSanitizer and UBSan by $compiler, fuzzing $fuzz"
    wait "$builder" || { tail -30 "$built"; failed=$((failed + 1)); return; }
    export FM_TEST_BRIEF=1 LSAN_OPTIONS="suppressions=$root/tests/leaks.supp:print_suppressions=0"
    # Clang 14 guesses where dynamic TLS begins from what glibc's allocator left in front of it, may be wrong, and then
    # looks for pointers at addresses like 0x508.
    export ASAN_OPTIONS="intercept_tls_get_addr=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
    test_build "$tree" \
        -R '^unit/|^check/|^e2e/(cli|bad_input|bench|run|scf|tune|verify_tokenizer|identity/dummy|route/api|route/stream)$|^fuzz/' \
        -E '^unit/(chem_fock@|tune_bars)'
}

case $build in /*) ;; *) build=$PWD/$build ;; esac
choose_sanitizers
build_sanitized >"$built" 2>&1 &
builder=$!
test_build "$build" -LE '^(model|long)$'
test_sanitized
cat "$skipped"
echo "$passed passed, $failed failed, $(wc -l <"$skipped") skipped"
[ "$failed" -eq 0 ]
