#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom convert: what it writes, what it refuses, how it goes on, and what the answers are worth.
. "$(dirname "$0")/lib.sh"

# The golden INT4 checkpoint is the conversion of v3, byte for byte.
run 0 "$fathom" convert --quiet --quantize int4 "$data/v3" "$work/int4"
for file in config.json model.safetensors; do
    cmp "$work/int4/$file" "$data/v3-int4/$file" || fail "$file is not the golden one"
done
[ ! -e "$work/int4/convert.json" ] || fail "the note of a conversion under way is still there"

# A cut-off conversion is no model, and goes on where it was.
mkdir "$work/blocked" "$work/blocked/config.json.part"
run 2 "$fathom" convert --quiet --quantize int4 "$data/v3" "$work/blocked"
[ ! -e "$work/blocked/config.json" ] || fail "config.json before everything else was complete"
run 2 "$fathom" verify --quiet --model-path "$work/blocked" --golden "$data/v3-int4/golden.json"
run 2 "$fathom" convert --quiet --quantize fp8 "$data/v3" "$work/blocked"
grep -q "another conversion" "$work/err" || fail "two conversions in one folder"
rmdir "$work/blocked/config.json.part"
run 0 "$fathom" convert --quiet --quantize int4 "$data/v3" "$work/blocked"
grep -q "1 files were there already" "$work/out" || fail "it began anew"
cmp "$work/blocked/config.json" "$data/v3-int4/config.json" || fail "config.json after going on"
[ -z "$(find "$work/blocked" -name '*.part')" ] || fail "a draft was left behind"

# Killed before its note was complete, it begins anew.
mkdir "$work/killed"
echo '{' >"$work/killed/convert.json.part"
run 0 "$fathom" convert --quiet --quantize int4 "$data/v3" "$work/killed"
[ "$(ls "$work/killed")" = "$(ls "$work/int4")" ] || fail "other files after a kill at the beginning"

refuse() # refuse WORDS ARGUMENTS...
{
    words=$1
    shift
    run 2 "$fathom" convert --quiet "$@"
    grep -q "$words" "$work/err" || fail "no word of: $words"
}
# By name, as other commands take it.
run 0 "$fathom" convert --quiet --quantize fp8 --experts-only fathom-tiny "$work/by-name"
[ -s "$work/by-name/config.json" ] || fail "fathom-tiny by its name"
"$fathom" convert --help | tr -s ' \n' ' ' | grep -q "the head does, too, with fp8" || fail "--help about the head"
refuse "built-in shape" --quantize int4 r1-mini "$work/again"
refuse "not empty" --quantize int4 "$data/v3" "$work/int4"
refuse "INT4 already" --quantize int4 "$data/v3-int4" "$work/again"
refuse "FP8 already" --quantize fp8 "$data/v3wide-fp8" "$work/again"
refuse "neither int4 nor fp8" --quantize int3 "$data/v3" "$work/again"
refuse "give MODEL OUT" --quantize int4 "$data/v3"
refuse "no model .*/nothing: not a directory" --quantize int4 "$work/nothing" "$work/again"
[ ! -e "$work/again" ] || fail "a refused conversion left a folder"

# From FP8, and experts alone: the rest is BF16 and named in the ignore list.
run 0 "$fathom" convert --quiet --quantize int4 --experts-only "$data/v3wide-fp8" "$work/experts"
grep -q self_attn "$work/experts/config.json" || fail "attention is not on the ignore list"
run 0 "$fathom" bench --quiet --model-path "$work/experts" --batch-size 2 --input-len 40 --output-len 4

# Answers: within 3 points of BF16 in INT4, within 1 in FP8 (BF16 has 99.5 %).
tiny=$here/../../models/fathom-tiny
for type in int4:96.5 fp8:98.5; do
    run 0 "$fathom" convert --quiet --quantize "${type%:*}" "$tiny" "$work/tiny-${type%:*}"
    run 0 "$fathom" eval --quiet --model-path "$work/tiny-${type%:*}" \
        --set "$data/tiny/held_out.jsonl" --floor "${type#*:}"
done
