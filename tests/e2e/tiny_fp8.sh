#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An FP8 copy of the model in the box loads and answers nearly as well.
. "$(dirname "$0")/lib.sh"
python3 -c 'import numpy' 2>/dev/null || { echo "no numpy: cannot make the copy"; exit 77; }

python3 "$here/../../tools/train/quantize_fp8.py" "$here/../../models/fathom-tiny" "$work/fp8"
run 0 "$fathom" eval --quiet --model-path "$work/fp8" --set "$data/tiny/held_out.jsonl" --floor 90
