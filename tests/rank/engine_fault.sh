#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# engine_fault.sh PROGRAM RANKS TIMES LAYOUT-OPTION...: every rank in turn is
# killed or stopped while the job steps, TIMES over.  The job must be over
# within ten seconds with one line that names the rank and what it was doing,
# and leave no process.  A replica that does not answer is found even if its
# watch thread still sends heartbeats.
. "$(dirname "$0")/job.sh"
ranks=$1 times=$2
shift 2

long="--quiet --skip-warmup --model-path r1-mini --dataset-name random --random-input-len 40
    --random-output-len 400 --num-prompts 4000 --max-total-tokens 20000"

steps() { grep -q "^#Output tokens" "$work/log"; } # about to

bench() # bench SIGNAL VICTIM LINE
{
    start_job "$ranks" bench $long --json-model-override-args "$small_shape" $layout
    wait_until 30 steps
    sleep "0.$(($(now) % 7 + 2))" # anywhere in a step
    kill "-$1" "$(rank_pid "$2")"
    ends_badly 10 "^fathom: rank $3.*it was: [^l]" # not: loading
    done=$((done + 1))
}

layout=$*
done=0
for _ in $(seq "$times"); do
    for victim in $(seq 0 $((ranks - 1))); do
        bench KILL "$victim" "$victim on .*died"
    done
    last=$((ranks - 1))
    bench STOP "$last" "$last on .*has not answered for"
    case $layout in
    *--dp*)
        watchful=$FM_COMM_SILENCE FM_COMM_SILENCE=600
        bench STOP "$last" "0 on .*replica $last has not answered for"
        FM_COMM_SILENCE=$watchful
        ;;
    esac
done
echo "$done of $done jobs ended as they should"
