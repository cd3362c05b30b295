#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packages.sh PROGRAM BUILD: the tarball runs where it is unpacked, the Debian package has what make
# install leaves, completions offer what the tables have, recipes are well-formed.
. "$(dirname "$0")/lib.sh"
build=$1
contrib=$here/../../contrib

# The tarball: its libraries are its own.
run 0 "$here/../../tools/tarball.sh" "$build" "$work/fathom-test.tar.gz"
mkdir "$work/there"
tar -C "$work/there" -xzf "$work/fathom-test.tar.gz"
mv "$work/there/fathom-test" "$work/moved"
run 0 ldd "$work/moved/bin/fathom"
[ -s "$work/moved/share/doc/fathom/LICENSE" ] || fail "a tarball without its licence"
for lib in libjansson libevent-2 libhwloc libopenblas libgfortran; do
    grep -q "$lib.*=> $work/moved/" "$work/out" || fail "$lib is not the tarball's own"
done
run 0 "$work/moved/bin/fathom" run --quiet --temperature 0 hello
grep -q "How can I help you?" "$work/out" || fail "the unpacked program does not find its model"

# The Debian package.
if command -v dpkg-shlibdeps >/dev/null && command -v cpack >/dev/null; then
    run 0 cpack --config "$build/CPackConfig.cmake" -B "$work/deb"
    deb=$(ls "$work"/deb/fathom_*.deb)
    run 0 dpkg-deb --contents "$deb"
    for file in usr/bin/fathom usr/share/man/man1/fathom.1 usr/share/bash-completion/completions/fathom \
        usr/share/fathom/models/fathom-tiny/config.json usr/include/fathom/fathom.h usr/share/doc/fathom/LICENSE \
        usr/share/doc/fathom/contrib/slurm/serve-cpu.sbatch; do
        grep -q "/$file$" "$work/out" || fail "no $file in the package"
    done
    run 0 dpkg-deb --field "$deb" Depends
    grep -q "libjansson4" "$work/out" || fail "the package does not say what it depends on"
    run 0 dpkg-deb --extract "$deb" "$work/root"
    run 0 "$work/root/usr/bin/fathom" run --model-path fathom-tiny --quiet --temperature 0 hello
    grep -q "How can I help you?" "$work/out" || fail "the program of the package does not find its model"
fi

# Completions: each shell reads its file, and bash offers commands and options.
PATH=$(dirname "$fathom"):$PATH run 0 bash -c ". '$contrib/completion/fathom.bash'
    COMP_WORDS=(fathom be) COMP_CWORD=1; _fathom; echo \"\${COMPREPLY[@]}\"
    COMP_WORDS=(fathom bench --num-pr) COMP_CWORD=2; _fathom; echo \"\${COMPREPLY[@]}\""
[ "$(cat "$work/out")" = "bench
--num-prompts" ] || fail "bash completes something else"
if command -v zsh >/dev/null; then # zsh asks in a terminal of its own what "fathom bench --num-pr<tab>" becomes
    PATH=$(dirname "$fathom"):$PATH run 0 timeout 30 zsh -f -c "zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell \"PS1=; fpath=('$contrib/completion' \\\$fpath); autoload -Uz compinit; compinit -u -d '$work/zcompdump'\"
        zpty -w shell 'echo re''ady'; zpty -r -m shell seen '*ready*'
        zpty -n -w shell \$'fathom bench --num-pr\t'
        zpty -r -m shell seen '*--num-prompts*' && echo \"\$seen\"; zpty -d shell"
    grep -q -e "--num-prompts" "$work/out" || fail "zsh completes something else"
fi
if command -v fish >/dev/null; then
    PATH=$(dirname "$fathom"):$PATH run 0 fish -c "source '$contrib/completion/fathom.fish'; complete -C 'fathom bench --num-pr'"
    grep -q "^--num-prompts" "$work/out" || fail "fish completes something else"
fi
run 0 "$fathom" serve --print-options
grep -q "^--tp=" "$work/out" && grep -q "^--port=" "$work/out" && ! grep -q "trust-remote-code" "$work/out" ||
    fail "the list of options"

# Recipes.
if command -v shellcheck >/dev/null; then
    run 0 shellcheck -S error "$here/../../tools/packages.sh" "$here/../../tools/tarball.sh" "$contrib"/pbs/*.pbs "$contrib"/slurm/*.sbatch
fi
run 0 "$here/containers.py"
run 0 python3 -c "import ast; ast.parse(open('$contrib/spack/packages/fathom/package.py').read())"
if command -v luac5.4 >/dev/null; then run 0 luac5.4 -p "$contrib/lmod/fathom.lua"; fi
version=$("$fathom" --version | sed -n '1s/fathom //p')
grep -q "\"Version: $version\"" "$contrib/lmod/fathom.lua" || fail "the module file has another version"
echo "tarball, package, completions and recipes"
