#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scf_fault.sh PROGRAM RANKS: every rank in turn is killed or stopped while the job
# iterates.  The job must be over within ten seconds with one line that names the rank
# and what it was doing, and leave no process; a restart then goes on.
. "$(dirname "$0")/job.sh"
ranks=$1
cd "$work"
deck() # deck START-LINE MAXITER
{
    cat <<END
$1
geometry noautosym
 C  -0.046520   0.664923   0.000000
 O  -0.046520  -0.758281   0.000000
 H  -1.086593   0.975908   0.000000
 H   0.437925   1.070963   0.888953
 H   0.437925   1.070963  -0.888953
 H   0.860979  -1.055701   0.000000
end
basis spherical
 * library cc-pvtz
end
scf; thresh 1e-9; maxiter $2; end
task scf
END
}
deck "start job" 100 >job.nw
deck "restart job" 100 >again.nw

iterates() { grep -q "^  *3  *-11[0-9]" "$work/log"; }

fault() # fault SIGNAL VICTIM LINE
{
    rm -f job.movecs
    start_job "$ranks" scf job.nw --threads 1
    wait_until 60 iterates
    kill "-$1" "$(rank_pid "$2")"
    ends_badly 10 "^fathom: rank $2 on $3.*it was: RHF"
    [ -s job.movecs ] || fail "no vectors are left"
}

for victim in $(seq 0 $((ranks - 1))); do fault KILL "$victim" ".* died"; done
fault STOP "$((ranks - 1))" ".* has not answered"

run 0 "$fathom" scf again.nw --quiet --threads 1
grep "Total SCF energy" "$work/out" >again
grep -q "Total SCF energy" again || fail "no energy after the restart"
echo "$((ranks + 1)) jobs ended as they should, and the last went on"
