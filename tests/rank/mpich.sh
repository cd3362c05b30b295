#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mpich.sh PROGRAM BUILD: fathom configured and built with Debian's MPICH (mpich_build.sh), beside Open MPI.
# Two ranks answer as one does, and as the program that was built with Open MPI.
. "$(dirname "$0")/../e2e/lib.sh"
build=$1/mpich
command -v mpicc.mpich >/dev/null && mpirun=$(command -v mpirun.mpich) ||
    { echo "there is no MPICH (apt install libmpich-dev mpich)"; exit 77; }
export FM_THREADS=1

"$here/mpich_build.sh" "$1" >"$work/out" 2>"$work/err" || fail "it cannot be built with MPICH"
run 0 ldd "$build/fathom"
grep -q "libmpich" "$work/out" && ! grep -q "libmpi\.so\|libopen-" "$work/out" || fail "it is linked to another MPI"

run 0 "$build/fathom" --version
grep -q "MPI  *MPICH Version: [0-9]" "$work/out" || fail "the version does not name MPICH"

# bench NAME COMMAND...: leaves $work/NAME.jsonl
bench()
{
    name=$1
    shift
    run 0 "$@" bench --quiet --skip-warmup --model-path fathom-tiny --dataset-name random --random-input-len 40 \
        --random-output-len 24 --num-prompts 8 --return-logprob --output-details "$work/$name.jsonl" $layout
    [ -s "$work/$name.jsonl" ] || fail "$name: no answers"
}
layout=""
bench other "$fathom"
bench alone "$build/fathom"
cmp -s "$work/other.jsonl" "$work/alone.jsonl" || fail "one rank: MPICH's build answers another thing"
for layout in "--tp 2" "--tp 2 --ep 2" "--pp 2" "--dp 2"; do
    bench many "$mpirun" -np 2 "$build/fathom"
    cmp -s "$work/alone.jsonl" "$work/many.jsonl" || fail "$layout: two ranks of MPICH answer another thing than one"
done

# One process that is asked for two ranks starts MPICH's launcher, not that of another MPI in PATH.
if [ "$(nproc)" -ge 2 ]; then
    layout="--tp 2"
    bench many "$build/fathom"
    cmp -s "$work/alone.jsonl" "$work/many.jsonl" || fail "two ranks that one process started"
fi

# The launcher of another MPI: said, not two jobs of one rank each.
if command -v mpirun.openmpi >/dev/null; then
    got=0
    timeout 120 mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 "$build/fathom" bench --quiet --model-path fathom-tiny \
        --num-prompts 1 --tp 2 >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ "$got" -ne 0 ] && grep -q "different MPI installations" "$work/err" || fail "Open MPI's launcher, MPICH's library"
fi
echo "two ranks of MPICH answer as one does"
