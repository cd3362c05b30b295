#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files that are not what they claim: exit 2 and one sentence that names what
# is wrong; no crash, no hang, no huge allocation.
. "$(dirname "$0")/lib.sh"

# refused WORDS COMMAND...: exit 2 with one line on stderr that contains WORDS
refused()
{
    words=$1
    shift
    run 2 "$@"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more or less than one line: $*"
    grep -q "^fathom [a-z]*: .*$words" "$work/err" || fail "\"$words\" is not in the message of: $*"
}

bench="$fathom bench --quiet --skip-warmup --num-prompts 1 --dataset-name random
       --random-input-len 8 --random-output-len 2"

# A copy of a good checkpoint to spoil; files are copies, not links.
fresh() { rm -rf "$work/m"; mkdir "$work/m"; cp "$data/${1:-v3}"/*.json "$data/${1:-v3}/model.safetensors" "$work/m"; }
model() { refused "$1" $bench --model-path "$work/m"; }

# --- where the model is
refused nowhere $bench --model-path "$work/nowhere"
mkdir "$work/empty"
refused config.json $bench --model-path "$work/empty"
mkdir -p "$work/onlyconfig"
cp "$data/v3/config.json" "$work/onlyconfig"
refused onlyconfig $bench --model-path "$work/onlyconfig"
refused "no/such-model" $bench --model-path no/such-model

# --- speculation
box="$bench --model-path $here/../../models/fathom-tiny"
refused "none of NEXTN" $box --speculative-algorithm MEDUSA
refused "drafts are a chain" $box --speculative-algorithm NEXTN --speculative-eagle-topk 4
refused "dummy weights" $box --speculative-algorithm NEXTN --speculative-simulate-accept-length 2
refused "no drafts to accept" $box --load-format dummy --speculative-simulate-accept-length 2
refused "from 1 to 2" $bench --model-path r1-mini --speculative-algorithm NEXTN --speculative-num-steps 1 \
    --speculative-simulate-accept-length 2.5
refused "fathom bench" "$fathom" run --model-path r1-mini --speculative-algorithm NEXTN \
    --speculative-simulate-accept-length 2 hello
refused "fathom bench" "$fathom" serve --model-path r1-mini --speculative-algorithm NEXTN \
    --speculative-simulate-accept-length 2

# --- config.json: what it says, and the word the message must contain
config() # config WORDS SED-SCRIPT
{
    fresh
    sed "$2" "$data/v3/config.json" >"$work/m/config.json"
    cmp -s "$data/v3/config.json" "$work/m/config.json" && fail "sed script $2 changes nothing"
    model "config.json.*$1"
}
config hidden_size 's/"hidden_size": 128/"hidden_size": 0/'
config hidden_size 's/"hidden_size": 128/"hidden_size": -128/'
config hidden_size 's/"hidden_size": 128/"hidden_size": 1000000000000/'
config hidden_size 's/"hidden_size": 128/"hidden_size": "128"/'
config hidden_size 's/"hidden_size": 128/"hidden_size": null/'
config hidden_size 's/"hidden_size": 128/"hidden_size": [128]/'
config num_hidden_layers 's/"num_hidden_layers": 4/"num_hidden_layers": 99999999/'
config num_hidden_layers 's/"num_hidden_layers": 4/"num_hidden_layers": 0/'
config vocab_size 's/"vocab_size": 512/"vocab_size": 1e300/'
config vocab_size 's/"vocab_size": 512,//'
config num_experts_per_tok 's/"num_experts_per_tok": 4/"num_experts_per_tok": 17/'
config n_group 's/"n_group": 4/"n_group": 3/'
config rope 's/"qk_rope_head_dim": 16/"qk_rope_head_dim": 15/'
config factor 's/"factor": 4.0/"factor": 0/'
config rms_norm_eps 's/"rms_norm_eps": 1e-06/"rms_norm_eps": "small"/'
config architectures 's/DeepseekV3ForCausalLM/LlamaForCausalLM/'
config "line" 's/"hidden_act": "silu",/"hidden_act": "silu"/'
fresh; : >"$work/m/config.json"; model config.json
fresh; echo '[]' >"$work/m/config.json"; model config.json
fresh; printf '{"a": "\377\376"}' >"$work/m/config.json"; model config.json
fresh; head -c 100000 /dev/zero | tr '\0' '[' >"$work/m/config.json"; model "config.json.*nested"
fresh; rm "$work/m/config.json"; mkdir "$work/m/config.json"; model config.json
refused "json-model-override-args\|override" $bench --model-path "$data/v3" --json-model-override-args '{'
refused num_hidden_layers $bench --model-path "$data/v3" --json-model-override-args '{"num_hidden_layers": -1}'

# --- safetensors
st=$work/m/model.safetensors
fresh; head -c 100000 "$data/v3/model.safetensors" >"$st"; model model.safetensors
fresh; head -c 4 "$data/v3/model.safetensors" >"$st"; model model.safetensors
fresh; : >"$st"; model model.safetensors
fresh; rm "$st"; model safetensors
fresh; { printf '\377\377\377\377\377\377\377\177'; tail -c +9 "$data/v3/model.safetensors"; } >"$st"; model model.safetensors
fresh; { printf '\377\377\377\007\0\0\0\0'; tail -c +9 "$data/v3/model.safetensors"; } >"$st"; model model.safetensors
fresh; { printf '\0\0\0\0\0\0\0\0'; tail -c +9 "$data/v3/model.safetensors"; } >"$st"; model model.safetensors
fresh; { printf '\010\0\0\0\0\0\0\0[1, 2,3]'; } >"$st"; model model.safetensors
header() # header WORDS SED-SCRIPT: the same length, so that only the header lies
{
    fresh
    sed "$2" "$data/v3/model.safetensors" >"$st"
    cmp -s "$data/v3/model.safetensors" "$st" && fail "sed script $2 changes nothing"
    [ "$(wc -c <"$st")" -eq "$(wc -c <"$data/v3/model.safetensors")" ] || fail "length: $2"
    model "$1"
}
header "embed_tokens" '1s/model.embed_tokens.weight/model.embed_tokenz.weight/'
header "lm_head.weight" '1s/"lm_head.weight":{"dtype":"BF16"/"lm_head.weight":{"dtype":"B961"/'
header "lm_head.weight" '1s/\("lm_head.weight":{"dtype":"BF16","shape":\)\[512,128\]/\1[128,512]/'
header "lm_head.weight" '1s/\("lm_head.weight":{"dtype":"BF16","shape":\)\[512,128\]/\1[999,128]/'
header "lm_head.weight" '1s/\("lm_head.weight":{"dtype":"BF16","shape":\)\[512,128\]/\1[-12,128]/'
header "lm_head.weight" '1s/\("lm_head.weight".*"data_offsets":\[\)0,/\19,/'
header "overlap" '1s/\[131072,262144\]/[131000,262072]/'
header "model.safetensors" '1s/"dtype"/"dtipe"/'
fresh; echo '{"weight_map": {"a": "../../etc/passwd"}}' >"$work/m/model.safetensors.index.json"; model index.json
fresh; echo '{"weight_map": {"a": "gone.safetensors"}}' >"$work/m/model.safetensors.index.json"; model gone.safetensors
fresh; echo '{"weight_map": 3}' >"$work/m/model.safetensors.index.json"; model index.json

# --- a plan that does not fit says so before it loads
refused "more than" $bench --model-path r1
refused "more than" $bench --model-path r1-mini --max-total-tokens 2000000000

# --- tokenizer.json
tokenizer() # tokenizer TEXT
{
    rm -rf "$work/t"; mkdir "$work/t"
    printf '%s' "$1" >"$work/t/tokenizer.json"
    refused tokenizer.json "$fathom" verify --tokenizer-path "$work/t" --tokenizer-golden "$data/tokenizer/golden.json"
}
for text in '' '{' '[]' '{}' '{"model": {}}' '{"model": {"type": "WordPiece", "vocab": {}, "merges": []}}' \
    '{"model": {"type": "BPE", "vocab": [], "merges": []}}' \
    '{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}' \
    '{"model": {"type": "BPE", "vocab": {"a": 999999999999}, "merges": []}}' \
    '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c d"]}}' \
    '{"added_tokens": [{"id": 0}], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}'; do
    tokenizer "$text"
done
spoil() # spoil SED-SCRIPT: a good file with one thing wrong
{
    sed "$1" "$data/tokenizer/tokenizer.json" >"$work/t/tokenizer.json"
    cmp -s "$data/tokenizer/tokenizer.json" "$work/t/tokenizer.json" && fail "sed script $1 changes nothing"
    refused tokenizer.json "$fathom" verify --tokenizer-path "$work/t" --tokenizer-golden "$data/tokenizer/golden.json"
}
spoil 's/"id": 4096,/"id": -4096,/'
spoil 's/"id": 4096,/"id": 999999999999,/'
spoil 's/"id": 4096,/"id": "4096",/'
spoil 's/\(sentence.*>": \)1,/\1-1,/'
spoil 's/\(sentence.*>": \)1,/\1"one",/'
spoil 's/\\\\p{N}{1,3}/(\\\\p{N}{1,3}/'
spoil '/"merges": \[/,+2s/^      \[/      ["a", /'
spoil '/"merges": \[/,+2s/^        "[^"]*"/        7/'
spoil 's/"type": "BPE"/"type": "Unigram"/'
head -c 200000 "$data/tokenizer/tokenizer.json" >"$work/t/tokenizer.json"
refused tokenizer.json "$fathom" verify --tokenizer-path "$work/t" --tokenizer-golden "$data/tokenizer/golden.json"
refused nowhere "$fathom" verify --tokenizer-path "$work/nowhere" --tokenizer-golden "$data/tokenizer/golden.json"
refused nowhere "$fathom" verify --tokenizer-path "$data/tokenizer" --tokenizer-golden "$work/nowhere"

# --- datasets
talk="$fathom bench --quiet --skip-warmup --model-path r1-mini --tokenizer-path $data/tokenizer"
dataset() { refused "$1" $talk --json-model-override-args "$small_shape" --dataset-path "$work/d.json" --num-prompts 2; }
for text in '' '{' '{}' '[]' '[1, 2]' '[{"conversations": 3}]' '[{"conversations": [{"value": 1}, {"value": 2}]}]' \
    '[{"id": "a", "conversations": [{"from": "human"}]}]'; do
    printf '%s' "$text" >"$work/d.json"
    dataset d.json
done
printf '[{"conversations": [{"value": "\377\376 bytes"}, {"value": "no text"}]}]' >"$work/d.json"; dataset d.json
head -c 1000000 /dev/zero | tr '\0' '[' >"$work/d.json"; dataset d.json
refused nowhere $talk --dataset-path "$work/nowhere"
refused "not a regular file" $bench --model-path "$work/onlyconfig" --dataset-path "$work/empty" # before weights are looked for
refused "dataset-path" $talk --dataset-name sharegpt --json-model-override-args "$small_shape"
refused "tokenizer" $bench --model-path "$data/v3" --dataset-name sharegpt --dataset-path "$work/d.json"
refused "weather" $bench --model-path "$data/v3" --dataset-name weather
# known before weights are looked for: this model has none
refused "tokenizer-path" $bench --model-path "$work/onlyconfig" --dataset-name sharegpt --dataset-path "$work/d.json"
refused "weather" $bench --model-path "$work/onlyconfig" --dataset-name weather
refused "tokenizer-path" "$fathom" eval --model-path "$work/onlyconfig" --set "$data/tiny/held_out.jsonl"
for command in bench run serve eval verify; do
    case $command in
    run) words="--tokenizer-path $data/tokenizer hello" ;;
    eval) words="--tokenizer-path $data/tokenizer --set $data/tiny/held_out.jsonl" ;;
    verify) words="--golden $data/v3/golden.json" ;;
    *) words= ;;
    esac
    refused "context-length 513 is more than the 512 tokens" "$fathom" $command --model-path "$work/onlyconfig" \
        --context-length 513 $words
done

# --- prompts
say() # say WORDS FILE
{
    got=0
    "$fathom" run --quiet --model-path r1-mini --json-model-override-args "$small_shape" \
        --tokenizer-path "$data/tokenizer" --max-new-tokens 4 <"$2" >"$work/out" 2>"$work/err" || got=$?
    [ "$got" -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q "$1" "$work/err" || fail "prompt $2, exit $got"
}
: >"$work/prompt"; say "empty" "$work/prompt"
printf 'a\377\376b' >"$work/prompt"; say "UTF-8" "$work/prompt"
printf 'a\000b' >"$work/prompt"; say "NUL" "$work/prompt"
yes 'a long story' | head -c 2000000 >"$work/prompt"; say "token" "$work/prompt"
refused "request 0" $bench --model-path "$data/v3" --random-input-len 200 --random-range-ratio 1 \
    --max-total-tokens 64 --context-length 512
refused tokenizer "$fathom" run --model-path "$data/v3" hello

# --- golden files and flags
golden() { printf '%s' "$1" >"$work/g.json"; refused g.json "$fathom" verify --quiet --model-path "$data/v3" --golden "$work/g.json"; }
for text in '' '{' '[]' '{}' '{"cases": []}' '{"cases": [1]}' '{"cases": [{"prompt": []}]}' \
    '{"cases": [{"prompt": [1], "greedy": [1], "margins": [1], "logits_first": [1], "logits_last": [1, 2],
      "bf16_rel_err_first": 0.1, "bf16_argmax_match": 1}]}' \
    '{"cases": [{"prompt": [1], "greedy": [1], "margins": [1], "logits_first": [1], "logits_last": [1],
      "bf16_rel_err_first": 0.1, "bf16_argmax_match": 1}]}' \
    '{"cases": [{"prompt": [512], "greedy": [1], "margins": [1], "logits_first": [1], "logits_last": [1],
      "bf16_rel_err_first": 0.1, "bf16_argmax_match": 1}]}'; do
    golden "$text"
done
for body in '{' '[]' '{"temperature": "hot"}' '{"temperature": -1}' '{"top_p": 0}' '{"seed": -3}' \
    '{"colour": 1}' '{"stop_token_ids": [-1]}' '{"logit_bias": {"x": 1}}' '{"n": 0}' '{"stop": 3}' \
    '{"logit_bias": {"100000": 1}}' '{"max_new_tokens": 3, "min_new_tokens": 4}'; do
    refused "" $bench --model-path "$data/v3" --extra-request-body "$body"
done
refused nowhere $bench --model-path "$data/v3" --result-filename "$work/nowhere/r"
refused "--trace $work/nowhere/t: " $bench --model-path "$work/onlyconfig" --trace "$work/nowhere/t" # before weights are read
refused nowhere $bench --model-path "$data/v3" --output-details "$work/nowhere/d"
refused "--output-details needs a value" $bench --model-path "$data/v3" --output-details --result-filename "$work/r"
refused nowhere $bench --model-path "$work/nowhere" --output-details "$work/details"
for flag in result-filename output-details; do
    refused "--$flag $work/empty: Is a directory" $bench --model-path "$data/v3" --$flag "$work/empty"
    [ ! -s "$work/out" ] || fail "--$flag: a folder was noticed only after the run"
done
refused "--answers $work/empty: Is a directory" "$fathom" eval --set "$work/nowhere" --answers "$work/empty"
[ "$(ls "$work" | grep -c details)" -eq 0 ] || fail "a failed run left a details file"
refused dtype $bench --model-path "$data/v3" --dtype int3
refused load-format $bench --model-path "$data/v3" --load-format gguf
refused schedule-policy $bench --model-path "$data/v3" --schedule-policy luck
refused device $bench --model-path "$data/v3" --device abacus
