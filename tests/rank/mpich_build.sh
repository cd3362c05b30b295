#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mpich_build.sh BUILD [CMAKE-ARGUMENT...]: fathom built with Debian's MPICH, in BUILD/mpich, for rank/mpich.  Does nothing
# where there is no MPICH.
set -eu
build=$1/mpich
shift
mpicc=$(command -v mpicc.mpich) || exit 0

# -O1: half the time of the usual build, and the same bits.
mkdir -p "$build"
{
    cmake -G Ninja -S "$(dirname "$0")/../.." -B "$build" -DFM_MPI=ON -DFM_MPICC="$mpicc" -DFM_CUDA=OFF -DFM_TESTS=OFF \
        -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 "$@" && cmake --build "$build" --target fathom_app
} >"$build/build.log" 2>&1 || { tail -30 "$build/build.log" >&2; exit 1; }
