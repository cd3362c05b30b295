#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An FP8 copy of fathom-tiny loads and answers nearly as well.
. "$(dirname "$0")/lib.sh"

run 0 "$fathom" convert --quantize fp8 "$here/../../models/fathom-tiny" "$work/fp8"
run 0 "$fathom" eval --quiet --model-path "$work/fp8" --set "$data/tiny/held_out.jsonl" --floor 97
