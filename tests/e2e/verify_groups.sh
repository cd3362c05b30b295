#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Group-limited routing in BF16: near-ties between groups of experts pass, errors do not:
#     verify_groups.sh FATHOM DATA
set -eu
fathom=$1 data=$2
golden=$data/v2lite/golden-groups8.json
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# check STATUS TEXT WORD...: verify ends with this status and says this
check()
{
    status=$1 text=$2
    shift 2
    got=0
    "$fathom" verify --quiet --model-path "$data/v2lite" --golden "$golden" "$@" >"$said" 2>&1 || got=$?
    if [ "$got" -eq "$status" ] && grep -q "$text" "$said"; then return; fi
    echo "$*: exit status $got, wanted $status and: $text"
    cat "$said"
    exit 1
}

# config TOPK_GROUP SCALE
config()
{
    printf '{"topk_method": "group_limited_greedy", "n_group": 8, "topk_group": %s, "routed_scaling_factor": %s}' "$1" "$2"
}

right=$(config 3 16.0)
check 0 "verdict: pass (3 of 3" --json-model-override-args "$right" --dtype float32
check 0 "verdict: pass (3 of 3" --json-model-override-args "$right" --dtype bfloat16
grep -q "routing: [1-9][0-9]* near-ties went the other way, 0 choices are wrong" "$said" ||
    { echo "no near-tie was met"; cat "$said"; exit 1; }
(export FM_ISA=ref && check 0 "verdict: pass (3 of 3" --json-model-override-args "$right" --dtype bfloat16)

# Another number of groups is no near-tie, and a factor that is 6 % off no rounding.
check 1 "verdict: fail (0 of 3" --json-model-override-args "$(config 4 16.0)" --dtype bfloat16
check 1 "verdict: fail" --json-model-override-args "$(config 3 15.0)" --dtype bfloat16
