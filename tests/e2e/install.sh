#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A user's program, built against what make install leaves.
#     install.sh PROGRAM BUILD
. "$(dirname "$0")/lib.sh"
build=$1
root=$here/../..

run 0 cmake --install "$build" --prefix "$work/usr"
for file in bin/fathom include/fathom/fathom.h include/fathom/sampling.h include/fathom/status.h \
    share/man/man1/fathom.1 share/doc/fathom/LICENSE share/doc/fathom/docs/cluster.md \
    share/doc/fathom/contrib/systemd/fathom.service; do
    [ -e "$work/usr/$file" ] || fail "$file is not installed"
done
pc=$(find "$work/usr" -name fathom.pc)
[ -n "$pc" ] || fail "fathom.pc is not installed"
export PKG_CONFIG_PATH="$(dirname "$pc")"
lib=$(pkg-config --variable=libdir fathom)
[ -L "$lib/libfathom.so" ] && [ -L "$lib/libfathom.so.0" ] || fail "libfathom.so and its SONAME"

# Nothing leaves the library that the header does not name.
nm -D --defined-only "$lib/libfathom.so" | awk '{print $3}' | sort >"$work/symbols"
cat "$work"/usr/include/fathom/*.h | grep -o 'FM_API[^;]*' | grep -o 'fm_[a-z_]*(' | tr -d '(' | sort \
    >"$work/declared"
cmp -s "$work/symbols" "$work/declared" || fail "exported: $(diff "$work/symbols" "$work/declared")"

run 0 ${CC:-cc} -std=c11 -Wall -Wextra -Werror "$root/examples/hello.c" \
    $(pkg-config --cflags --libs fathom) -Wl,-rpath,"$lib" -o "$work/hello"
run 0 "$work/hello" "$data/v3" 35
[ "$(wc -w <"$work/out")" -eq 16 ] || fail "hello did not print 16 tokens"
cp "$work/out" "$work/first"
run 0 "$work/hello" "$data/v3" 35
cmp -s "$work/out" "$work/first" || fail "hello is not the same twice"
run 1 "$work/hello" "$work/nowhere" 35
grep -q nowhere "$work/out" || fail "hello does not say what is missing"
run 0 "$work/usr/bin/fathom" --version

DESTDIR="$work/stage" run 0 cmake --install "$build" --prefix /opt/fathom
[ -x "$work/stage/opt/fathom/bin/fathom" ] || fail "DESTDIR"
