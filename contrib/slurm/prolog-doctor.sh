#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A prolog for Slurm (Prolog= of slurm.conf, as root on every node of a job): is this node as fast
# as on a good day?  A node that has become slower is drained, and the job goes elsewhere.  Once per
# node, on a good day:
#
#     fathom doctor --rates /var/lib/fathom/rates.json
FATHOM=${FATHOM:-/usr/bin/fathom}
GOOD=${GOOD:-/var/lib/fathom/rates.json}
[ -r "$GOOD" ] || exit 0 # nothing to compare with

report=$(timeout 60 "$FATHOM" doctor --seconds 5 --rates none --against "$GOOD" 2>&1)
case $? in
1)
    reason=$(printf '%s\n' "$report" | sed -n 's/^FAULT //p' | head -1)
    scontrol update "NodeName=$SLURMD_NODENAME" State=DRAIN "Reason=fathom doctor: $reason"
    exit 1 ;;
*) exit 0 ;; # fine, or it could not run: no reason to lose the node
esac
