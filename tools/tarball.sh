#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tarball.sh BUILD OUT.tar.gz: what make install leaves, with the libraries it needs beside it, to be
# unpacked anywhere.  The C library and MPI stay the machine's own: the first cannot be carried along,
# and an MPI of another make would not find the cluster's network.
set -eu
build=$1 out=$2
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
name=$(basename "$out" .tar.gz)

cmake --install "$build" --prefix "$stage/$name" --strip >/dev/null
ldd "$stage/$name/bin/fathom" "$stage/$name"/lib*/libfathom.so | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
    while read -r lib; do
        case $(basename "$lib") in
        ld-linux* | libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libmpi*.so* | libopen-*.so* | libcuda.so*) ;;
        *) cp -L "$lib" "$stage/$name/lib/" ;;
        esac
    done

{
    echo "fathom, to be unpacked anywhere: bin/fathom --help, docs, units and job scripts in share/doc/fathom."
    echo "It needs the C library of $(ldd --version | sed -n '1s/.* //p') or newer."
    if ldd "$stage/$name/bin/fathom" | grep -q libmpi; then
        echo "It was built with MPI and needs $(ldd "$stage/$name/bin/fathom" | awk '/libmpi/ {print $1; exit}') of this machine."
        echo "One that needs none: make tarball B=build-single CMAKE_ARGS=-DFM_MPI=OFF"
    fi
} >"$stage/$name/README"
tar -C "$stage" -czf "$out" "$name"
echo "$out: $(du -h "$out" | cut -f1)"
