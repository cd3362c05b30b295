#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tiers.sh PROGRAM: prefixes in a directory: a second process finds what the first computed, damaged
# pages, another checkpoint and a directory that is no directory change no answer, and fathom cache
# lists, checks and prunes.
. "$(dirname "$0")/lib.sh"
model=r1-mini shape=$small_shape within=""

ask() # ask NAME OPTION...
{
    name=$1
    shift
    rm -f "$work/result"
    run 0 $within "$fathom" bench --quiet --skip-warmup --model-path "$model" --json-model-override-args "$shape" \
        --dataset-name generated-shared-prefix --gsp-num-groups 2 --gsp-prompts-per-group 3 --gsp-system-prompt-len 200 \
        --gsp-question-len 20 --gsp-output-len 8 --num-prompts 6 --return-logprob --max-total-tokens 4096 \
        --deterministic --output-details "$work/$name.jsonl" --result-filename "$work/result" "$@"
}
same()
{
    cmp -s "$work/want.jsonl" "$work/$1.jsonl" || fail "$1: other answers"
}
files="--hicache-storage-dir $work/pages" # implies the back end

ask want
ask first $files
same first
grep -q '"storage_tokens": 0' "$work/result" || fail "the first process found pages"
ask second $files --hicache-debug-demote
same second
grep -q '"storage_tokens": [1-9]' "$work/result" || fail "the second process found none: $(cat "$work/result")"

# Mounted read-only, with a page missing that cannot be written: the others are read.
cat >"$work/read_only" <<'END'
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"
END
if unshare -m sh "$work/read_only" "$work/pages" true 2>/dev/null; then
    rm "$(find "$work/pages" -name '*.page' | sort | head -1)"
    within="unshare -m sh $work/read_only $work/pages"
    ask fixed $files --hicache-debug-demote
    within=""
    same fixed
    grep -q '"storage_tokens": [1-9]' "$work/result" || fail "nothing was read: $(cat "$work/result")"
    [ "$(grep -c "warn tier: the file tier reads pages of .* and writes none: Read-only" "$work/err")" -eq 1 ] ||
        fail "one line says that nothing is written"
    [ "$(grep -c "warn tier" "$work/err")" -eq 1 ] || fail "one line, not more"
else
    echo "no read-only mount: this user may not mount"
fi

plain=$shape
shape=" $(echo "$shape" | tr -d ' ' | sed 's/,/ ,  /g') " # the same overrides, written differently
ask spelled $files --hicache-debug-demote
same spelled
grep -q '"storage_tokens": [1-9]' "$work/result" || fail "blanks in overrides count: $(cat "$work/result")"
shape=$plain
ask other $files --hicache-debug-demote --random-seed 7 # another model: nothing is of use to it
grep -q '"storage_tokens": 0' "$work/result" || ! cmp -s "$work/want.jsonl" "$work/other.jsonl" ||
    fail "another model's pages were used"

run 0 "$fathom" cache "$work/pages" --check
grep -q "r1-mini, layers 0-3, bfloat16, planes latent 3x160x2, cpu .*, deterministic: [1-9][0-9]* pages, [1-9][0-9]* tokens" "$work/out" || fail "the list"
grep -q " 0 damaged" "$work/out" || fail "pages are damaged"
page=$(find "$work/pages" -name '*.page' | sort | head -1)
printf x | dd of="$page" bs=1 seek=6000 conv=notrunc 2>/dev/null
run 1 "$fathom" cache "$work/pages" --remove-bad
grep -q "^damaged: $page, removed$" "$work/out" || fail "the damaged page is not named"
run 0 "$fathom" cache "$work/pages" --check
for page in $(find "$work/pages" -name '*.page'); do printf x | dd of="$page" bs=1 seek=6000 conv=notrunc 2>/dev/null; done
ask damaged $files --hicache-debug-demote
same damaged
grep -q "warn tier: .* altered" "$work/err" || fail "nothing was said of damaged pages"

run 0 "$fathom" cache "$work/pages" --prune-size 0
grep -q "^removed [1-9]" "$work/out" || fail "nothing was removed"
[ "$(find "$work/pages" -name '*.page' | wc -l)" -eq 0 ] || fail "pages are left"
run 2 "$fathom" cache "$work/nowhere"
run 2 "$fathom" cache

ask none --hicache-storage-backend file --hicache-storage-dir /dev/null/pages
same none
[ "$(grep -c "the file tier in /dev/null/pages is off" "$work/err")" -eq 1 ] || fail "one line says that it is off"
ask foreign --hicache-storage-backend file $files --hicache-mem-layout page_first --hicache-io-backend kernel \
    --hicache-storage-prefetch-policy timeout --hicache-storage-backend-extra-config '{}'
same foreign
run 2 "$fathom" bench --model-path r1-mini --hicache-storage-backend file
run 2 "$fathom" bench --model-path r1-mini --hicache-storage-backend tape --hicache-storage-dir "$work/x"
run 2 "$fathom" bench --model-path r1-mini $files --hicache-write-policy sometimes
run 2 "$fathom" bench --model-path r1-mini $files --disable-radix-cache
# A checkpoint of the same shapes, 64 KiB of 23 MB of it different, has no use for the other's pages.
tiny=$here/../../models/fathom-tiny
model=$work/like_tiny shape={}
mkdir "$model"
cp "$tiny"/* "$model"
ask original $files
dd if="$tiny/model.safetensors" of="$model/model.safetensors" bs=4096 count=16 skip=700 seek=2900 conv=notrunc 2>/dev/null
ask want
cmp -s "$work/want.jsonl" "$work/original.jsonl" && fail "the altered checkpoint answers as the original does"
ask altered $files --hicache-debug-demote
same altered
grep -q '"storage_tokens": 0' "$work/result" || fail "pages of another checkpoint were used: $(cat "$work/result")"

# Pages with and without the MTP layer's plane are different pages, and the list tells them apart.
run 0 "$fathom" cache "$work/pages" --prune-size 0
ask want
for drafts in "" "--speculative-algorithm NEXTN"; do
    ask drafts $files $drafts
    same drafts
done
run 0 "$fathom" cache "$work/pages"
[ "$(grep -c "like_tiny, .* planes latent [0-9x]*, cpu" "$work/out")" -eq 1 ] || fail "the list without drafts"
[ "$(grep -c "like_tiny, .* planes latent [0-9x]* + draft [0-9x]*, cpu" "$work/out")" -eq 1 ] ||
    fail "the list with drafts"

echo "prefixes outlive a process, damage and a missing directory change no answer"
