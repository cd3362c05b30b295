#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fathom run: a prompt as words, on stdin, and a chat on a terminal.
. "$(dirname "$0")/lib.sh"

ask() # ask STATUS OPTION...
{
    want=$1
    shift
    run "$want" "$fathom" run --quiet --model-path r1-mini --json-model-override-args "$small_shape" \
        --tokenizer-path "$data/tokenizer" --temperature 0 --ignore-eos "$@"
}

ask 0 --max-new-tokens 12 "Hello there"
[ -s "$work/out" ] && [ ! -s "$work/err" ] || fail "no answer, or noise"
cp "$work/out" "$work/answer"
[ "$(head -1 "$work/answer")" = "<think>" ] || fail "the prompt opens the thinking, and the tag is not shown"
ask 0 --max-new-tokens 12 Hello there
cmp -s "$work/out" "$work/answer" || fail "words are joined by blanks"
echo "Hello there" | "$fathom" run --quiet --model-path r1-mini --json-model-override-args "$small_shape" \
    --tokenizer-path "$data/tokenizer" --temperature 0 --ignore-eos --max-new-tokens 12 >"$work/out"
cmp -s "$work/out" "$work/answer" || fail "stdin gives another answer than the command line"

# The template, the system message and the sampling flags reach the model.
for other in "--raw" "--system Be-brief" "--temperature 1.5 --seed 3" "--repetition-penalty 1.9 --max-new-tokens 40"; do
    ask 0 --max-new-tokens 12 $other "Hello there"
    cmp -s "$work/out" "$work/answer" && fail "$other changes nothing"
done
ask 0 --max-new-tokens 12 --temperature 1 --seed 3 "Hello there"
cp "$work/out" "$work/drawn"
ask 0 --max-new-tokens 12 --temperature 1 --seed 3 "Hello there"
cmp -s "$work/out" "$work/drawn" || fail "the same seed, another answer"
ask 0 --max-new-tokens 12 --temperature 1.5 "Hello there"
cp "$work/out" "$work/drawn"
ask 0 --max-new-tokens 12 --temperature 1.5 "Hello there"
cmp -s "$work/out" "$work/drawn" && fail "no seed, but the same answer in the next run"

# Stop strings: any of several ends the answer, before the stop itself.
letter=$(sed 1d "$work/answer" | head -c 6 | tail -c 2)
ask 0 --max-new-tokens 12 --stop "no such text" --stop "$letter" "Hello there"
grep -qF -- "$letter" "$work/out" && fail "the stop string is in the answer"
head -c "$(($(wc -c <"$work/out") - 1))" "$work/out" >"$work/before"
head -c "$(wc -c <"$work/before")" "$work/answer" | cmp -s - "$work/before" || fail "the text before the stop differs"

ask 2 --top-p 0 hello
ask 2 --temperature -1 hello
run 2 "$fathom" run --model-path r1-mini hello
grep -q "tokenizer" "$work/err" || fail "a model without tokenizer"
run 0 "$fathom" run --quiet --temperature 0 hello # no model named: the one in the box
grep -q "How can I help you?" "$work/out" || fail "fathom-tiny does not greet"

# The chat, on a pseudo-terminal; each line is typed when the prompt is there.
command -v script >/dev/null || exit 0
# exec: a shell left waiting would turn the first Ctrl-C into its own end.
chat="exec $fathom run --quiet --model-path r1-mini --json-model-override-args '$(echo $small_shape)' \
    --tokenizer-path $data/tokenizer --temperature 0 --ignore-eos --max-new-tokens 1500"
until_seen() # until_seen N TEXT: wait until N lines of the chat contain TEXT
{
    for _ in $(seq 200); do
        [ "$(grep -ac -- "$2" "$work/chat" 2>/dev/null)" -ge "$1" ] && return
        sleep 0.1
    done
}
type_lines()
{
    until_seen 1 "^> "
    printf '/help\n'
    until_seen 2 "^> "
    printf 'tell me a long story\n'
    until_seen 1 "long story"
    sleep 0.3
    printf '\003'
    until_seen 3 "^> "
    printf '/system be brief\n'
    until_seen 4 "^> "
    printf 'half a line'
    until_seen 1 "half a line"
    printf '\003'
    until_seen 5 "^> "
    printf '/quit\n'
    sleep 1
}
export XDG_STATE_HOME="$work/state"
: >"$work/chat"
type_lines | SHELL=/bin/sh timeout 60 script -qefc "$chat" "$work/chat" >/dev/null 2>&1 || fail "the chat ended badly: $(cat "$work/chat")"
grep -aq "forget the conversation" "$work/chat" || fail "/help"
grep -aq "the conversation starts again" "$work/chat" || fail "/system"
grep -q "long.*story" "$work/state/fathom/history" || fail "no history was kept"
grep -q "half" "$work/state/fathom/history" && fail "an abandoned line is in the history"
exit 0
