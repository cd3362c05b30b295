# SPDX-License-Identifier: Apache-2.0
"""From the training parameters to a checkpoint with the published names and types."""
import json
import os

import torch
from safetensors.torch import load_file, save_file


def expert_tensors(prefix, mlp, c):
    """One wide MLP back into its experts."""
    for j in range(c.experts):
        rows = slice(j * c.moe_inter, (j + 1) * c.moe_inter)
        yield f"{prefix}{j}.gate_proj.weight", mlp.gate_proj.weight[rows]
        yield f"{prefix}{j}.up_proj.weight", mlp.up_proj.weight[rows]
        yield f"{prefix}{j}.down_proj.weight", mlp.down_proj.weight[:, rows]


def layer_tensors(prefix, layer, c):
    for name, value in layer.state_dict().items():
        if not name.startswith("mlp.experts."):
            yield prefix + name, value
    if not layer.dense:
        yield from expert_tensors(prefix + "mlp.experts.", layer.mlp.experts, c)


def mtp_tensors(model):
    """Those of the MTP layer alone; it shares embedding and head with the main model."""
    c = model.c
    mtp = f"model.layers.{c.layers}."
    yield mtp + "enorm.weight", model.mtp.enorm.weight
    yield mtp + "hnorm.weight", model.mtp.hnorm.weight
    yield mtp + "eh_proj.weight", model.mtp.eh_proj.weight
    yield from layer_tensors(mtp, model.mtp.layer, c)
    yield mtp + "shared_head.norm.weight", model.mtp.norm.weight


def tensors(model):
    c = model.c
    yield "model.embed_tokens.weight", model.embed_tokens.weight
    for i, layer in enumerate(model.layers):
        yield from layer_tensors(f"model.layers.{i}.", layer, c)
    yield "model.norm.weight", model.norm.weight
    yield "lm_head.weight", model.lm_head.weight

    mtp = f"model.layers.{c.layers}."
    yield mtp + "embed_tokens.weight", model.embed_tokens.weight
    yield from mtp_tensors(model)
    yield mtp + "shared_head.head.weight", model.lm_head.weight


def config_json(c):
    return {
        "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
        "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 1,
        "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": c.hidden,
        "initializer_range": 0.02, "intermediate_size": c.dense_inter, "kv_lora_rank": c.kv_rank,
        "max_position_embeddings": int(c.yarn_factor * c.yarn_length),
        "moe_intermediate_size": c.moe_inter, "moe_layer_freq": 1, "n_group": c.groups,
        "n_routed_experts": c.experts, "n_shared_experts": 1, "norm_topk_prob": True,
        "num_attention_heads": c.heads, "num_experts_per_tok": c.top_experts,
        "num_hidden_layers": c.layers, "num_key_value_heads": c.heads, "num_nextn_predict_layers": 1,
        "q_lora_rank": c.q_rank, "qk_nope_head_dim": c.nope, "qk_rope_head_dim": c.rope,
        "rms_norm_eps": c.eps,
        "rope_scaling": {"type": "yarn", "factor": c.yarn_factor, "beta_fast": c.beta_fast,
                         "beta_slow": c.beta_slow, "mscale": 1.0, "mscale_all_dim": 1.0,
                         "original_max_position_embeddings": c.yarn_length},
        "rope_theta": c.rope_base, "routed_scaling_factor": c.routed_scale, "scoring_func": "sigmoid",
        "tie_word_embeddings": False, "topk_group": c.top_groups, "topk_method": "noaux_tc",
        "torch_dtype": "bfloat16", "use_cache": True, "v_head_dim": c.value, "vocab_size": c.vocab,
    }


def export(model, directory):
    """BF16 throughout, but for the routers' bias, which is F32 as in the published files."""
    os.makedirs(directory, exist_ok=True)
    out = {}
    for name, value in tensors(model):
        keep = torch.float32 if name.endswith("e_score_correction_bias") else torch.bfloat16
        out[name] = value.detach().to("cpu", keep).clone().contiguous()
    save_file(out, f"{directory}/model.safetensors", {"format": "pt"})
    with open(f"{directory}/config.json", "w") as f:
        json.dump(config_json(model.c), f, indent=2)
        f.write("\n")
    with open(f"{directory}/generation_config.json", "w") as f:
        json.dump({"bos_token_id": 0, "eos_token_id": 1, "do_sample": False}, f, indent=2)
        f.write("\n")


def export_mtp(model, source, directory):
    """The checkpoint in `source` with the model's MTP layer; all other tensors keep their bytes."""
    out = load_file(f"{source}/model.safetensors")
    for name, value in mtp_tensors(model):
        out[name] = value.detach().to(out[name].dtype).clone().contiguous()
    save_file(out, f"{directory}/model.safetensors", {"format": "pt"})


def load(model, directory):
    """The way back: what tensors() yields are views of the parameters."""
    stored = load_file(f"{directory}/model.safetensors")
    with torch.no_grad():
        for name, value in tensors(model):
            value.copy_(stored[name])


def round_to_bf16(model):
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.bfloat16().float())
