#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks that share one GPU answer as one rank does:  tools/gpu/ranks.sh FATHOM OUT SECONDS
# fathom-tiny, by one rank and divided among 2 and 4 in every way, recorded
# steps included; tokens and log-probabilities are compared byte for byte.  NCCL takes
# ranks on one GPU only if each says it is on another host, and is slow then: this is
# about being right.  OUT gets ranks.log.  0: all were the same.
set -u
if [ $# -ne 3 ]; then
    echo "usage: $0 FATHOM OUT SECONDS" >&2
    exit 2
fi
fathom=$1 out=$2 seconds=$3
cd "$(dirname "$0")/../.." || exit 2
log=$out/ranks.log
: >"$log"
if ! command -v mpirun >/dev/null || "$fathom" --version | grep -q '^ *MPI *no'; then
    echo "no mpirun here, or no MPI in $fathom"
    exit 1
fi
export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 FM_COMM_TIMEOUT=60
export FM_DEVICE="${FM_DEVICE:-cuda}" FM_THREADS="${FM_THREADS:-2}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ends=$(($(date +%s) + seconds)) n_same=0 wrong="" skipped=""

# answer NAME RANKS OPTION...: leaves $work/NAME.jsonl
answer()
{
    name=$1 ranks=$2
    shift 2
    launch="tests/rank/mpirun.sh $ranks tools/gpu/own_host.sh"
    [ "$ranks" -gt 1 ] || launch=
    left=$((ends - $(date +%s)))
    [ "$left" -gt 0 ] || return 124
    [ "$left" -lt 60 ] || left=60
    echo "== $ranks ranks: $*" >>"$log"
    timeout -k 5 "$left" $launch "$fathom" bench --model-path models/fathom-tiny \
        --skip-warmup --dataset-name random --random-input-len 96 --random-output-len 10 \
        --random-range-ratio 1 --num-prompts 6 --chunked-prefill-size 256 --max-running-requests 16 \
        --max-total-tokens 4096 --mem-fraction-static 0.1 --return-logprob \
        --output-details "$work/$name.jsonl" "$@" >>"$log" 2>&1 </dev/null
}

# same RANKS OPTION...: the answers of one rank
same()
{
    rm -f "$work/many.jsonl"
    answer many "$@"
    rc=$?
    if [ $rc -eq 124 ]; then
        skipped="$skipped [$*]"
    elif [ $rc -ne 0 ]; then
        wrong="$wrong [$*: status $rc]"
    elif cmp "$work/one.jsonl" "$work/many.jsonl" >>"$log" 2>&1; then
        n_same=$((n_same + 1))
    else
        wrong="$wrong [$*: other answers]"
    fi
}

if ! answer one 1; then
    echo "one rank failed: $(tail -1 "$log")"
    exit 1
fi
answer alone 1 --max-running-requests 1 --disable-radix-cache --disable-cuda-graph
cmp "$work/one.jsonl" "$work/alone.jsonl" >>"$log" 2>&1 || wrong=" [one rank, one at a time]"
dpa=--enable-dp-attention
same 2 --tp-size 2
same 2 --tp-size 2 --ep-size 2
same 2 --pp-size 2
same 2 --tp-size 2 --ep-size 2 --dp-size 2 $dpa
same 4 --tp-size 2 --pp-size 2
same 4 --tp-size 4 --ep-size 2
same 4 --tp-size 4 --ep-size 4 --dp-size 2 $dpa
same 4 --tp-size 2 --ep-size 2 --pp-size 2 --dp-size 2 $dpa
same 2 --tp-size 2 --disable-cuda-graph
same 2 --tp-size 2 --disable-overlap-schedule
same 2 --dp-size 2
echo "$n_same layouts answer as one rank${wrong:+; wrong:$wrong}${skipped:+; no time for:$skipped}"
[ -z "$wrong" ] && [ "$n_same" -gt 0 ]
