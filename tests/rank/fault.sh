#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fault.sh PROGRAM RANKS TIMES HOW...: let every rank in turn fail in each way,
# TIMES over.  Each time the job must end within ten seconds, not with success,
# with exactly one line that names the rank and what it was doing, and leave
# no process behind.
program=$1 ranks=$2 times=$3
shift 3
here=$(dirname "$0")
out=$(mktemp)
tag=fault-$$
copy=$(mktemp -d)/$tag # a name of its own, so that orphans can be counted
cp "$program" "$copy"
trap 'rm -rf "$out" "$(dirname "$copy")"' EXIT
export FM_COMM_SILENCE="${FM_COMM_SILENCE:-1}" FM_COMM_TIMEOUT="${FM_COMM_TIMEOUT:-2}"

now() { date +%s%3N; }
alive() { pgrep -r D,R,S,T,t -f "$tag"; } # not those that only wait to be counted

fault() # fault HOW VICTIM: what must hold, checked
{
    case $1 in
    absent) line="; it was: step 300, in all_reduce" ;;
    close) line="^fathom: rank .* it was: " ;; # it depends on what its goodbye meets
    abort) line="^fathom: rank $2 on .*: out of luck; it was: step 300" ;;
    term) line="^fathom: rank $2 on .*: told to terminate; it was: step 300" ;;
    stop) line="^fathom: rank $2 on .* has not answered for .* s; it was: step 300" ;;
    *) line="^fathom: rank $2 on .* died; it was: step 300" ;;
    esac
    began=$(now)
    timeout -k 5 30 "$here/mpirun.sh" "$ranks" "$copy" "$1" "$2" >"$out" 2>&1
    rc=$?
    took=$(($(now) - began))
    said=$(grep -c "^fathom: " "$out")
    if [ "$rc" -eq 0 ] || [ "$took" -gt 10000 ] || [ "$said" -ne 1 ] || ! grep -q "$line" "$out"; then
        echo "FAILED: $1 of rank $2: status $rc after $took ms, $said lines; want $line"
        cat "$out"
        return 1
    fi
    if [ "$1" = absent ] && [ "$2" -ne 0 ] && ! grep -q "rank $2 on .* was: sleeping at step 300" "$out"; then
        echo "FAILED: absent rank $2 is not named"
        cat "$out"
        return 1
    fi
    for _ in $(seq 20); do alive >/dev/null || break; sleep 0.1; done # a launcher kills a second after it asked
    if alive; then
        echo "FAILED: $1 of rank $2 left processes behind"
        return 1
    fi
    [ "$took" -le "${longest:-0}" ] || longest=$took
}

done=0
for i in $(seq "$times"); do
    for how in "$@"; do
        for victim in $(seq 0 $((ranks - 1))); do
            fault "$how" "$victim" || exit 1
            done=$((done + 1))
        done
    done
done
echo "$done of $done jobs ended as they should, the longest after $longest ms"
