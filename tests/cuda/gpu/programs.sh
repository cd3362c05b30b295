#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the programs for a GPU machine do before there is a GPU:
#     programs.sh FATHOM-TEST-GPU BENCH_CUDA REPOSITORY
set -u
test_gpu=$1 bench=$2 root=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CUDA_VISIBLE_DEVICES="" # as on a machine without one
failed=0

expect() # expect STATUS TEXT COMMAND...
{
    status=$1 text=$2
    shift 2
    "$@" >"$dir/said" 2>&1
    got=$?
    if [ $got -ne "$status" ] || ! grep -q -- "$text" "$dir/said"; then
        echo "FAILED: $*: status $got, expected $status and \"$text\":"
        head -20 "$dir/said"
        failed=1
    fi
}

expect 0 "backend.cu: v3_checkpoint" "$test_gpu" --list
expect 0 "mla_absorbed.cu:" "$test_gpu" --list absorbed
expect 2 "no GPU" "$test_gpu"
expect 0 "v2-lite" "$bench" --list
expect 2 "no section nosuch" "$bench" --only ceilings,nosuch
expect 2 "not 0" "$bench" --seconds 0
expect 2 "unrecognized option" "$bench" --nonsense
expect 2 "no GPU" "$bench" --only ceilings --json "$dir/bench.json"
[ ! -e "$dir/bench.json" ] || { echo "FAILED: results of nothing"; failed=1; }

# Nothing of C++, OpenMP or JSON has to be on the other machine.
for program in "$test_gpu" "$bench"; do
    needed=$(objdump -p "$program" | awk '/NEEDED/ { print $2 }' |
        grep -vE '^(ld-linux.*|lib(c|m|dl|rt|pthread|cublasLt|hwloc|mpi)\.so.*)$')
    [ -z "$needed" ] || { echo "FAILED: $program needs" $needed; failed=1; }
done

# The whole command: every part ends, says why, and the rest still runs.
mkdir "$dir/bin"
ln -s "$test_gpu" "$bench" "$dir/bin"
expect 1 "bench: FAILED" env FM_GPU_BIN="$dir/bin" "$root/tools/gpu/run.sh" "$dir/out" tests bench
for text in "tests: FAILED" "bench: FAILED" "no GPU"; do
    grep -q "$text" "$dir/out/summary.txt" && continue
    echo "FAILED: no \"$text\" in the summary"
    failed=1
done
expect 1 "no part nosuch" "$root/tools/gpu/run.sh" "$dir/out" nosuch
exit $failed
