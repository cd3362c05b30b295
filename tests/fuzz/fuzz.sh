#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a libFuzzer target for FM_FUZZ_SECONDS (2):  fuzz.sh TARGET CORPUS FOUND
# The seed is fixed, so that a test passes or fails alike on the same code; FM_FUZZ_SEED=0 takes
# another each time, and campaign.sh looks for new faults.  It works on a copy of the corpus, so
# that what it finds new stays out of the tree; inputs that fail are left in the folder FOUND.
set -u
target=$1 corpus=$2 found=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/corpus"
cp -R "$corpus"/. "$work/corpus" 2>/dev/null
cd "$work" || exit 1
if "$target" -seed="${FM_FUZZ_SEED:-1}" -max_total_time="${FM_FUZZ_SECONDS:-2}" -timeout=30 -rss_limit_mb=2048 -verbosity=0 \
    -print_final_stats=1 "$work/corpus" >log 2>&1; then
    echo "$(sed -n 's/^stat::number_of_executed_units: *//p' log) inputs, no fault"
else
    tail -40 log
    mkdir -p "$found" && cp crash-* timeout-* oom-* "$found" 2>/dev/null
    exit 1
fi
