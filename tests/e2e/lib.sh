# SPDX-License-Identifier: Apache-2.0
# Sourced by every test here: TEST PROGRAM [ARG...].  A test stops at its first
# failure and says what was run.
set -eu

fathom=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C OMP_WAIT_POLICY=passive # no spinning: tests share the machine
export FM_DEVICE="${FM_DEVICE:-cpu}"     # also where there is a GPU

fail()
{
    echo "FAIL: $*"
    if [ -s "$work/out" ]; then echo "--- stdout"; head -c 2000 "$work/out"; fi
    if [ -s "$work/err" ]; then echo "--- stderr"; head -c 2000 "$work/err"; fi
    exit 1
}

# run STATUS COMMAND...: leaves $work/out and $work/err
run()
{
    want=$1
    shift
    got=0
    timeout 120 "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ "$got" -eq "$want" ] || fail "exit $got, want $want: $*"
}

# A shape that takes milliseconds: R1's structure, a few layers.
small_shape='{"num_hidden_layers": 3, "hidden_size": 256, "intermediate_size": 512,
 "moe_intermediate_size": 128, "n_routed_experts": 16, "num_attention_heads": 4, "num_key_value_heads": 4,
 "q_lora_rank": 96, "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
 "v_head_dim": 64, "vocab_size": 4128, "max_position_embeddings": 2048, "n_group": 4,
 "topk_group": 2, "num_experts_per_tok": 4}'

# Does this machine have the level FM_ISA asks for?
need_isa()
{
    FM_ISA= run 0 "$fathom" --version
    levels=$(sed -n 's/^ *ISA detected//p' "$work/out")
    case "$levels " in
    *" ${FM_ISA:-ref} "*) ;;
    *) echo "this machine has no $FM_ISA, only$levels"; exit 77 ;;
    esac
}

# And is it not the level the machine takes anyway, which is tested without asking?
need_lower_isa()
{
    need_isa
    case "$levels" in
    *" ${FM_ISA:-none}") echo "$FM_ISA is this machine's own level, tested without FM_ISA"; exit 77 ;;
    esac
}
