#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom doctor on a machine with a GPU:  tools/gpu/doctor.sh FATHOM OUT
# One rank, two ranks that share the GPU, and two that NCCL takes for two hosts (NCCL_HOSTID), so that
# links between GPUs are measured although there is one.  Names and numbers that a GPU must have are
# looked for, rates are not judged.  OUT gets doctor.log and doctor*.json.  0: all were there.
set -u
if [ $# -ne 2 ]; then
    echo "usage: $0 FATHOM OUT" >&2
    exit 2
fi
fathom=$1 out=$2
cd "$(dirname "$0")/../.." || exit 2
log=$out/doctor.log missing=""
: >"$log"
quick="doctor --seconds 4 --rates none"

# examine NAME LAUNCHER...: the text goes to the log, the JSON to OUT/NAME.json
examine()
{
    name=$1
    shift
    echo "== $*" >>"$log"
    timeout -k 5 120 "$@" "$fathom" $quick >>"$log" 2>&1 </dev/null
    [ $? -le 1 ] || missing="$missing [$name: text]"
    timeout -k 5 120 "$@" "$fathom" $quick --json >"$out/$name.json" 2>>"$log" </dev/null
    [ $? -le 1 ] || missing="$missing [$name: JSON]"
}

has() # has NAME TEXT: in that JSON
{
    grep -q -- "$2" "$out/$1.json" || missing="$missing [$1: no $2]"
}

examine doctor env
for word in '"cuda_runtime": "[0-9]' '"driver": "[0-9]' '"pci": "' '"throttle_reasons": "' '"mhz": [1-9]' '"mhz_memory": [1-9]' \
    '"pcie_width": [1-9]' '"ecc": [01]' '"memory_errors_uncorrected": [0-9]' '"nvlinks": ' '"upload": ' 'CUDA driver='; do
    has doctor "$word"
done
if command -v mpirun >/dev/null && ! "$fathom" --version | grep -q '^ *MPI *no'; then
    export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1
    examine doctor2 tests/rank/mpirun.sh 2
    has doctor2 'links between GPUs were not measured: ranks 0 and 1 share a GPU'
    examine doctor2_nccl tests/rank/mpirun.sh 2 tools/gpu/own_host.sh
    for word in '"gpu_link": {' '"gpu_near": {' '"gpu_all_to_all": {'; do has doctor2_nccl "$word"; done
else
    missing="$missing [no mpirun here, or no MPI in $fathom]"
fi
sed -n 's/^\(NCCL within hosts.*\)/\1/p; s/^\(NCCL all-to-all.*\)/\1/p' "$log" | tail -2
[ -z "$missing" ] || echo "missing:$missing"
[ -z "$missing" ]
