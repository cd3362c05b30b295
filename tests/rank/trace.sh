#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trace.sh PROGRAM: four ranks record themselves while one of them is stopped most of the time:
# the verdict names that rank.  Then the job is killed: its traces can be read up to the last second.
set -eu
. "$(dirname "$0")/job.sh"
export FM_COMM_SILENCE=20 FM_COMM_TIMEOUT=60
slow=2
model="--model-path $data/v3 --dtype float32 --skip-tokenizer-init"
shape="--dataset-name random-ids --random-input-len 64 --random-output-len 32 --random-range-ratio 1"

all_wrote() # every rank has begun to record steps
{
    for r in 0 1 2 3; do [ -s "$work/$1.rank$r" ] || return 1; done
}

slow_down() # until the job is over: 30 ms at rest, 10 ms at work
{
    while kill -STOP "$1" 2>/dev/null; do
        sleep 0.03
        kill -CONT "$1" 2>/dev/null || return 0
        sleep 0.01
    done
}

# shellcheck disable=SC2086
start_job 4 bench $model $shape --num-prompts 24 --tp 4 --quiet --trace "$work/slow"
wait_until 30 all_wrote slow
pid=$(rank_pid $slow)
slow_down "$pid" &
brake=$!
rc=0
wait "$job_pid" || rc=$?
job_pid=
wait "$brake" || true
[ "$rc" -eq 0 ] || fail "the job ended with $rc: $(cat "$work/log")"

"$fathom" trace "$work/slow" >"$work/said" || fail "fathom trace: $(cat "$work/said")"
grep -q "ranks wait for rank $slow " "$work/said" || fail "rank $slow is not named: $(cat "$work/said")"
grep -q "[0-9] % slower in its ops" "$work/said" || fail "not by how much: $(cat "$work/said")"
grep -q "^all_gather (" "$work/said" || fail "no collectives: $(cat "$work/said")"

# A job that is killed
# shellcheck disable=SC2086
start_job 4 bench $model $shape --num-prompts 4000 --tp 4 --quiet --trace "$work/killed"
wait_until 30 all_wrote killed
sleep 2
killed=$(date +%s%3N)
alive | xargs -r kill -9
wait "$job_pid" 2>/dev/null || true
job_pid=
"$fathom" trace "$work/killed" >"$work/said" || fail "fathom trace after kill -9: $(cat "$work/said")"
grep -q "4 of 4 ranks had not finished" "$work/said" || fail "$(cat "$work/said")"
grep -q "^experts (moe)" "$work/said" || fail "$(cat "$work/said")"

# of every rank up to the last second: its last span ended less than 1000 ms before the signal
"$fathom" trace "$work/killed" --json >"$work/said" || fail "fathom trace --json after kill -9"
sed -n '/"ranks": \[/,/^ \]/p' "$work/said" | tr -d ',' | awk -v killed="$killed" '
    /"wall_s":/ { wall = $2 }
    /"began_unix_ms":/ { began = $2 }
    /"is_closed":/ { ranks++; if (killed - (began + 1000 * wall) > 1000) { print "rank", ranks - 1, killed - began - 1000 * wall, "ms short"; bad = 1 } }
    END { exit bad || ranks != 4 }' >"$work/short" || fail "the trace does not reach the last second: $(cat "$work/short")"
