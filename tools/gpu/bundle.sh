#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs for a machine that has a GPU and cannot build:  tools/gpu/bundle.sh BUILD OUT
# OUT gets fathom, fathom-test-gpu and bench_cuda without symbols, the libraries
# they need beside CUDA's and the C library's, and the commit.  MPI is left out
# unless FM_MPI says otherwise: it belongs to the machine whose mpirun is used.
set -eu
if [ $# -ne 2 ]; then
    echo "usage: $0 BUILD OUT" >&2
    exit 2
fi
cd "$(dirname "$0")/../.."
build=$1 out=$2
limit=${FM_BUNDLE_MIB:-24} # what one transfer holds, less the repository

cmake -G Ninja -B "$build" -DFM_CUDA=ON -DFM_MPI="${FM_MPI:-OFF}" >/dev/null
cmake --build "$build" --target fathom_app fathom-test-gpu bench_cuda ${JOBS:+-j "$JOBS"}
rm -rf "$out"
mkdir -p "$out/lib"
for program in "$build/fathom" "$build/tests/cuda/gpu/fathom-test-gpu" "$build/bench/cuda/bench_cuda"; do
    strip -o "$out/$(basename "$program")" "$program"
    ldd "$program"
done | awk '$3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|mpi|open-rte|open-pal|cu[A-Za-z]*|nccl|nv[A-Za-z]*))\.so' |
    while read -r library; do strip -o "$out/lib/$(basename "$library")" "$library"; done
git describe --always --dirty >"$out/commit" 2>/dev/null || echo unknown >"$out/commit"

size=$(du -sm "$out" | cut -f1)
echo "$out: $size MiB"
[ "$size" -le "$limit" ] || { echo "$out is larger than $limit MiB" >&2; exit 1; }
