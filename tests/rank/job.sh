# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that start ranks of the program and do something to them:
# TEST PROGRAM [ARG...].  The program runs as a copy with a name of its own, so
# that its processes can be counted.
. "$(dirname "$0")/../e2e/lib.sh"
tag=ranks-$$
mkdir "$work/bin"
cp "$fathom" "$work/bin/$tag"
fathom=$work/bin/$tag
job_pid=
export FM_THREADS=1 FM_COMM_SILENCE="${FM_COMM_SILENCE:-1.5}" FM_COMM_TIMEOUT="${FM_COMM_TIMEOUT:-5}"

now() { date +%s%3N; }
alive() { pgrep -r D,R,S,T,t -f "^[^ ]*bin/$tag"; } # not those that only wait to be counted
let_end() { for _ in $(seq 20); do alive >/dev/null || break; sleep 0.1; done; } # a launcher kills a second after it asked

clean_up()
{
    [ -z "$job_pid" ] || kill -9 "$job_pid" 2>/dev/null || true
    alive | xargs -r kill -9 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT

start_job() # start_job RANKS OPTION...: in the background, its output in $work/log
{
    ranks=$1
    shift
    : >"$work/log" # now, not when the job comes to run
    "$here/mpirun.sh" "$ranks" "$fathom" "$@" >>"$work/log" 2>&1 </dev/null &
    job_pid=$!
}

wait_until() # wait_until SECONDS COMMAND...: it succeeds, or the test fails
{
    until_ms=$(($(now) + $1 * 1000))
    shift
    while ! "$@" >/dev/null 2>&1; do
        [ "$(now)" -lt "$until_ms" ] || fail "waited for: $*; the job said: $(cat "$work/log")"
        sleep 0.05
    done
}

rank_pid() # rank_pid N: the process of that rank
{
    for pid in $(alive); do
        if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1"; then
            echo "$pid"
            return
        fi
    done
    return 1
}

# ends_badly SECONDS LINE: the job is over in time, not with success, with one
# line that matches LINE, and nothing of it is left.
ends_badly()
{
    began=$(now)
    while kill -0 "$job_pid" 2>/dev/null && [ $(($(now) - began)) -le $(($1 * 1000)) ]; do sleep 0.05; done
    took=$(($(now) - began))
    kill -0 "$job_pid" 2>/dev/null && fail "still there after $took ms: $(cat "$work/log")"
    rc=0
    wait "$job_pid" || rc=$?
    job_pid=
    [ "$rc" -ne 0 ] || fail "the job ended well: $(cat "$work/log")"
    [ "$(grep -c '^fathom: ' "$work/log")" -eq 1 ] || fail "not one line: $(cat "$work/log")"
    grep -q "$2" "$work/log" || fail "no \"$2\" in: $(cat "$work/log")"
    let_end
    if alive >/dev/null; then fail "processes are left: $(alive)"; fi
}
