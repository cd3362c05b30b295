#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# engine_start.sh PROGRAM: what is refused before anything runs: layouts that
# cannot be, ranks with different options, a rank without memory.  All ranks
# end, with status and sentence, and none is left.
. "$(dirname "$0")/job.sh"

shape="bench --quiet --skip-warmup --model-path r1-mini --dataset-name random --random-input-len 20
    --random-output-len 4 --num-prompts 2 --max-total-tokens 512"

# refused RANKS SENTENCE OPTION...: before it starts, in at most ten seconds
refused()
{
    ranks=$1 sentence=$2
    shift 2
    rc=0
    began=$(now)
    launch="$here/mpirun.sh $ranks"
    [ "$ranks" -gt 1 ] || launch=
    timeout -k 2 20 $launch ${wrap:-} "$fathom" $shape --json-model-override-args "$small_shape" "$@" \
        >"$work/out" 2>"$work/err" </dev/null || rc=$?
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "status $rc: $*"
    [ $(($(now) - began)) -le 10000 ] || fail "took $(($(now) - began)) ms: $*"
    grep -q -e "$sentence" "$work/err" || fail "no \"$sentence\": $*"
    let_end
    if alive; then fail "processes are left: $*"; fi
}

refused 1 "mpirun -np 2" --tp 2 --no-launch
refused 1 "mpirun -np 4" --tp 2 --pp 2 --no-launch
refused 2 "2 ranks were started" --seed 1
refused 2 "2 ranks were started.*ppr:1:node becomes ppr:2:node" --tp 4
refused 2 "ep-size 3 must divide" --tp 2 --ep 3
refused 2 "must divide --tp-size" --tp 2 --dp 3 --enable-dp-attention
refused 3 "heads" --tp 3
refused 4 "layers" --pp 4
grep -c "layers" "$work/err" | grep -qx 1 || fail "the sentence is said by every rank"

# One rank is started with something else.
cat >"$work/wrap" <<'END'
#!/bin/sh
if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then eval "$ODD"; fi
exec "$@"
END
chmod +x "$work/wrap"
wrap=$work/wrap
cp "$fathom" "$work/bin/other-$tag" && printf 'x' >>"$work/bin/other-$tag"

odd() # odd COMMANDS SENTENCE: rank 1 of two runs the commands first
{
    ODD=$1
    export ODD
    refused 2 "$2" --tp 2
}
odd "export FM_PAGE_SIZE=4" "differs between ranks: .* on rank 1"
odd "export FM_CHUNKED_PREFILL_SIZE=64" "differs between ranks: .* on rank 1"
odd 'set -- "$@" --hicache-storage-dir /nowhere' "hicache-storage-dir differs between ranks: .* on rank 1"
odd 'set -- "$@" --random-seed 5' "differs between ranks: .* on rank 1"
odd 'set -- "$@" --json-model-override-args {\"num_hidden_layers\":2}' "differs between ranks: .* on rank 1"

# The same path on another host may hold another model.
mkdir "$work/this" "$work/that"
cp "$data/v3/config.json" "$data/v3/model.safetensors" "$work/this"
sed 's/"rope_theta": [0-9.]*/"rope_theta": 9999.0/' "$work/this/config.json" >"$work/that/config.json"
cp "$work/this/model.safetensors" "$work/that"
elsewhere() { refused 2 "$1 differs between ranks: .* on rank 1" --tp 2 --model-path "$work/this" --json-model-override-args {}; }
ODD='set -- "$@" --model-path '"$work/that"
elsewhere "config.json"
cp "$work/this/config.json" "$work/that"
dd if=/dev/urandom of="$work/that/model.safetensors" bs=100000 seek=2 count=4 conv=notrunc 2>/dev/null
elsewhere "the checkpoint"

# Replicas write text: their leaders need the same tokenizer, wherever it lies.
mkdir "$work/words" "$work/other"
cp "$data/tokenizer/"* "$work/words"
cp "$data/tokenizer/"* "$work/other"
replicas() { refused 2 "the tokenizer differs between ranks: .* on rank 1" --dp 2 --tokenizer-path "$work/words"; }
ODD='set -- "$@" --skip-tokenizer-init'
replicas
printf ' ' >>"$work/other/tokenizer.json"
ODD='set -- "$@" --tokenizer-path '"$work/other"
replicas
cp "$work/words/tokenizer.json" "$work/other"
timeout 20 "$here/mpirun.sh" 2 "$wrap" "$fathom" $shape --json-model-override-args "$small_shape" --dp 2 \
    --tokenizer-path "$work/words" >"$work/out" 2>"$work/err" </dev/null || fail "a copy of the tokenizer is refused"

# Address space for MPI and the program on one rank, but not for its weights.
ODD="ulimit -v 1200000"
refused 2 "rank 1 on .*the weights take .* for everything" --tp 2 --json-model-override-args {}
echo "what cannot be is refused with a sentence"
