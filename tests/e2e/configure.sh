#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# configure.sh PROGRAM: building on a machine where one is not root: packages that only tests need are
# no reason to stop, and any vendor's MPI is found.
. "$(dirname "$0")/lib.sh"
root=$here/../..
command -v cmake >/dev/null && command -v ninja >/dev/null || { echo "no cmake or no ninja"; exit 77; }

# packages.sh for a user who is not root, where nothing is installed.
mkdir "$work/bin"
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/dpkg-query"
chmod +x "$work/bin/id" "$work/bin/dpkg-query"
PATH=$work/bin:$PATH run 0 "$root/tools/packages.sh" build
grep -q "apt-get install -y.* libjansson-dev" "$work/err" && ! grep -q "cmocka\|clang" "$work/err" ||
    fail "packages to build with"
PATH=$work/bin:$PATH run 0 "$root/tools/packages.sh" test
grep -q "apt-get install -y.* libcmocka-dev" "$work/err" && ! grep -q jansson "$work/err" || fail "packages to test with"
run 2 "$root/tools/packages.sh" fly

configure() # configure STATUS OPTION...
{
    want=$1
    shift
    rm -rf "$work/build"
    run "$want" cmake -G Ninja -S "$root" -B "$work/build" -DFM_CUDA=OFF -DFM_EMULATOR=OFF "$@"
}

# Without cmocka: everything but the tests.
printf '#!/bin/sh\nfor w; do [ "$w" != cmocka ] || exit 1; done\nexec pkg-config "$@"\n' >"$work/bin/no-cmocka"
chmod +x "$work/bin/no-cmocka"
configure 0 -DPKG_CONFIG_EXECUTABLE="$work/bin/no-cmocka" -DFM_MPI=OFF
grep -q "tests  no: .*libcmocka-dev" "$work/out" || fail "not a word of the tests"
configure 1 -DPKG_CONFIG_EXECUTABLE="$work/bin/no-cmocka" -DFM_MPI=OFF -DFM_TESTS=ON
grep -q "libcmocka-dev" "$work/err" || fail "tests asked for, and no word of what is missing"

# A wrapper that knows -show alone, as those of MPICH, Intel and Cray do.
command -v mpicc >/dev/null || exit 0
words=$(mpicc -show)
printf '#!/bin/sh\ncase " $* " in *" --showme"*) exit 1 ;; *" -show "*) echo "%s" ;; *) exec mpicc "$@" ;; esac\n' \
    "$words" >"$work/bin/mpicc-show"
chmod +x "$work/bin/mpicc-show"
configure 0 -DFM_TESTS=OFF -DFM_MPI=ON -DFM_MPICC="$work/bin/mpicc-show"
grep -q "MPI .* found" "$work/out" || fail "a wrapper with -show alone"

# One without headers is none: then pkg-config is asked, and where that knows none either, it is said.
printf '#!/bin/sh\necho gcc -I/nonexistent -lmpi\n' >"$work/bin/bare"
printf '#!/bin/sh\nfor w; do case $w in *mpi*) exit 1 ;; esac; done\nexec pkg-config "$@"\n' >"$work/bin/no-mpi"
chmod +x "$work/bin/bare" "$work/bin/no-mpi"
configure 1 -DFM_TESTS=OFF -DFM_MPI=ON -DFM_MPICC="$work/bin/bare" -DPKG_CONFIG_EXECUTABLE="$work/bin/no-mpi"
grep -q "mpi.h not found" "$work/err" && grep -q "FM_MPICC" "$work/err" || fail "no MPI at all"
pkg-config --exists ompi-c || exit 0
configure 0 -DFM_TESTS=OFF -DFM_MPI=ON -DFM_MPICC="$work/bin/bare"
grep -q "MPI .*ompi.* found" "$work/out" || fail "MPI by pkg-config"
echo "configured without root, without cmocka, with other wrappers"
