#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs for a machine that has a GPU and cannot build:  tools/gpu/bundle.sh BUILD OUT
# OUT gets fathom, fathom-test-gpu and bench_cuda without symbols, the libraries
# they need beside CUDA's and what every machine has, and the commit; `fathom scf` does not run.  Ranks are in it
# where mpicc is, or as FM_MPI says; MPI itself is the other machine's, whose mpirun is used.
set -eu
if [ $# -ne 2 ]; then
    echo "usage: $0 BUILD OUT" >&2
    exit 2
fi
cd "$(dirname "$0")/../.."
build=$1 out=$2
limit=${FM_BUNDLE_MIB:-24} # what one transfer holds, less the repository
ranks=OFF
if command -v mpicc >/dev/null; then ranks=ON; fi

# Kernels pack to a sixth; the driver unpacks them when a program starts.
cmake -G Ninja -B "$build" -DFM_CUDA=ON -DFM_MPI="${FM_MPI:-$ranks}" \
    -DCMAKE_CUDA_FLAGS=--compress-mode=size >/dev/null
cmake --build "$build" --target fathom_app fathom-test-gpu bench_cuda ${JOBS:+-j "$JOBS"}
rm -rf "$out"
mkdir -p "$out/lib"
of_the_machine='lib([cm]|dl|rt|pthread|resolv|stdc\+\+|gcc_s|ssl|crypto|mpi|open-.*|(nccl|cu|nv).*)'
for program in fathom tests/cuda/gpu/fathom-test-gpu bench/cuda/bench_cuda; do
    strip -o "$out/$(basename "$program")" "$build/$program"
    ldd "$build/$program"
done | awk '$3 ~ /^\// { print $3 }' | sort -u | grep -vE "/$of_the_machine\.so" |
    while read -r library; do strip -o "$out/lib/$(basename "$library")" "$library"; done

# The chemistry engine's libraries are four times the rest, and nothing in a bundle calls them:
# empty ones of the same name let the programs start.
for library in libopenblas.so.0 liblapacke.so.3 liblapack.so.3 libblas.so.3 libtmglib.so.3 libxc.so.9 libgfortran.so.5; do
    [ ! -f "$out/lib/$library" ] || cc -shared -Wl,-soname,"$library" -x c /dev/null -o "$out/lib/$library"
done
git describe --always --dirty >"$out/commit" 2>/dev/null || echo unknown >"$out/commit"

size=$(du -sm "$out" | cut -f1)
echo "$out: $size MiB"
[ "$size" -le "$limit" ] || { echo "$out is larger than $limit MiB" >&2; exit 1; }
