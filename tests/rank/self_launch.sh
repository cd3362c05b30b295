#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# self_launch.sh PROGRAM: one process that is asked for two ranks starts them, with the words and the
# standard input it was given; a benchmark that is ended by a signal still prints its table.
. "$(dirname "$0")/../e2e/lib.sh"
[ "$(nproc)" -ge 2 ] || { echo "two ranks want two processors"; exit 77; }
unset OMPI_COMM_WORLD_RANK PMI_RANK PMIX_RANK
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

small="--model-path r1-mini --dataset-name random --random-input-len 8 --random-output-len 4"
run 0 "$fathom" bench $small --json-model-override-args "$small_shape" --num-prompts 2 --tp 2 --trust-remote-code
grep -q "^Successful requests: *2 " "$work/out" || fail "no table from two ranks"
[ "$(grep -c "^fathom bench: --trust-remote-code" "$work/err")" -eq 1 ] || fail "a flag is explained by every rank"
grep -q "^ *1 " "$work/err" || fail "no second rank in the table of ranks"

run 0 "$fathom" run --quiet --temperature 0 hello
cp "$work/out" "$work/alone"
echo hello | timeout 60 "$fathom" run --quiet --temperature 0 --tp 2 >"$work/out" 2>"$work/err" || fail "run --tp 2"
cmp -s "$work/out" "$work/alone" || fail "two ranks answer another thing than one"

run 2 "$fathom" bench $small --json-model-override-args "$small_shape" --tp 2 --no-launch
grep -q "mpirun -np 2 fathom" "$work/err" || fail "--no-launch"

# mpirun passes the signal on to all ranks; the first needs a moment to write its table,
# which is more than mpirun gives unless told.
for layout in "--tp 2" "--dp 2"; do
    mpirun --mca odls_base_sigkill_timeout 3 --allow-run-as-root --oversubscribe --bind-to none -np 2 "$fathom" bench --quiet --skip-warmup $small \
        --json-model-override-args "$small_shape" --random-output-len 400 --num-prompts 500 --max-running-requests 8 $layout \
        --result-filename "$work/part.jsonl" >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    for _ in $(seq 300); do grep -q "^#Output" "$work/out" && break || sleep 0.1; done
    sleep 0.5
    kill -TERM $pid
    wait $pid && fail "$layout: a job that was ended ended well"
    grep -q "^Result: *partial (SIGTERM)$" "$work/out" || fail "$layout: no partial table"
    tail -1 "$work/part.jsonl" | grep -q '"partial": true' || fail "$layout: no partial line"
done
echo "one process started two ranks"
