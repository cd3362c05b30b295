#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden files from an independent double-precision forward pass (numpy only).

    make_golden.py CHECKPOINT_DIR OUT.json [--override JSON] [--steps 24] [--lengths 1,7,33,150]
                   [--prompt IDS] [--fp8-activations]

The checkpoint is a DeepSeek V2/V3 one in BF16, FP8 or INT4; with --fp8-activations what FP8 weights are
multiplied with is quantised for every 128 columns of a row, and where one value lies so near the middle
of two E4M3 numbers that another order of a sum decides, a random model's logits move by per cents: choose
a prompt where none does; --override replaces config fields, so that one
set of weights serves several routing methods and RoPE settings, and of a large model the first layers
alone are computed ({"num_hidden_layers": 2}).  Every step is a full forward over everything before it.

`routes` of a case are the experts each token goes to, [MoE layer][token][k].  Beside the exact pass
runs one that rounds what ops hand to each other to BF16 and takes the exact pass's routes: it says
how far BF16 arithmetic alone may stray.
"""
import argparse
import glob
import json
import math
import struct

import numpy as np


class Checkpoint:
    """Every model*.safetensors of a folder, mapped: only tensors that are asked for are read."""

    def __init__(self, folder):
        self.header, self.file = {}, {}
        for path in sorted(glob.glob(folder + "/model*.safetensors")):
            raw = np.memmap(path, np.uint8, "r")
            size = struct.unpack("<Q", raw[:8].tobytes())[0]
            for name, t in json.loads(raw[8 : 8 + size].tobytes()).items():
                self.header[name], self.file[name] = t, raw[8 + size :]

    def __call__(self, name):
        if name not in self.header and name + "_packed" in self.header:
            return self.int4(name)
        t = self.header[name]
        lo, hi = t["data_offsets"]
        data = self.file[name][lo:hi].tobytes()
        if t["dtype"] == "BF16":
            wide = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
            return wide.view(np.float32).astype(np.float64).reshape(t["shape"])
        if t["dtype"] == "F8_E4M3":
            return self.fp8(name, np.frombuffer(data, np.uint8).reshape(t["shape"]))
        if t["dtype"] != "F32":
            raise SystemExit(f"{name} is {t['dtype']}: the reference reads BF16, FP8 and F32 alone")
        return np.frombuffer(data, np.float32).astype(np.float64).reshape(t["shape"])

    def is_fp8(self, name):
        return self.header.get(name, {}).get("dtype") == "F8_E4M3"

    def fp8(self, name, byte):
        """E4M3 with a scale for each 128 x 128."""
        exponent, mantissa = (byte >> 3 & 15).astype(np.int64), (byte & 7).astype(np.float64)
        value = np.where(exponent > 0, (8 + mantissa) * 2.0 ** (exponent - 10), mantissa * 2.0**-9)
        scale = np.kron(self(name + "_scale_inv"), np.ones((128, 128)))[: byte.shape[0], : byte.shape[1]]
        return np.where(byte & 128, -value, value) * scale

    def int4(self, name):
        """Eight values to an int32, the first in the lowest four bits, each plus 8; groups of 32."""
        t, scale = self.header[name + "_packed"], self(name + "_scale")
        assert t["dtype"] == "I32", t["dtype"]
        lo, hi = t["data_offsets"]
        packed = np.frombuffer(self.file[name + "_packed"][lo:hi].tobytes(), np.int32)
        value = (packed[:, None] >> np.arange(0, 32, 4)) & 15
        value = value.reshape(t["shape"][0], -1).astype(np.float64) - 8
        return value * np.repeat(scale, 32, axis=1)


def rope_parameters(c):
    """As newer files have them, or from the rope_scaling and rope_theta of published ones."""
    if c.get("rope_parameters"):
        return c["rope_parameters"]
    p = dict(c.get("rope_scaling") or {}, rope_theta=c.get("rope_theta", 10000.0))
    return {"rope_type": p.get("type", "default"), **p}


class Rope:
    """Frequencies, cos/sin magnitude and softmax factor, YaRN or plain."""

    def __init__(self, c):
        p = rope_parameters(c)
        d, base = c["qk_rope_head_dim"], p.get("rope_theta", 10000.0)
        f = base ** (-np.arange(0, d, 2) / d)
        self.magnitude, self.softmax = 1.0, 1.0
        if p.get("rope_type") == "yarn":
            s, length = p["factor"], p["original_max_position_embeddings"]
            corr = lambda turns: d * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))
            low = max(math.floor(corr(p["beta_fast"])), 0)
            high = min(math.ceil(corr(p["beta_slow"])), d - 1)
            ramp = np.clip((np.arange(d // 2) - low) / max(high - low, 1e-3), 0, 1)
            f = f / s * ramp + f * (1 - ramp)
            m = lambda a: 0.1 * a * math.log(s) + 1
            self.magnitude = m(p["mscale"]) / m(p["mscale_all_dim"])
            self.softmax = m(p["mscale_all_dim"]) ** 2
        self.freq = f.astype(np.float32).astype(np.float64)

    def __call__(self, x):  # x [T, ..., d], interleaved pairs
        angle = np.arange(x.shape[0])[:, None] * self.freq
        cos, sin = np.cos(angle) * self.magnitude, np.sin(angle) * self.magnitude
        if x.ndim == 3:
            cos, sin = cos[:, None], sin[:, None]
        a, b = x[..., 0::2], x[..., 1::2]
        y = np.empty_like(x)
        y[..., 0::2], y[..., 1::2] = a * cos - b * sin, a * sin + b * cos
        return y


def exactly(x):
    return x


def to_bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def to_e4m3(x):
    unit = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 2.0**-20))), -6) - 3)
    return np.clip(np.round(x / unit) * unit, -448, 448)  # ties to even


def quantised(x):
    """Each 128 columns of a row: amax / 448 times an E4M3 number."""
    y = np.empty_like(x)
    for at in range(0, x.shape[-1], 128):
        block = x[..., at : at + 128]
        amax = np.maximum(np.abs(block).max(-1, keepdims=True), 2.0**-100)
        y[..., at : at + 128] = to_e4m3(block * (448 / amax)) * (amax / 448)
    return y


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def route(c, logits, bias, given):
    """The k experts of each token, or those given, and their weights."""
    method = c.get("topk_method") or ("noaux_tc" if c["model_type"] == "deepseek_v3" else "greedy")
    p = 1 / (1 + np.exp(-logits)) if method == "noaux_tc" else softmax(logits)
    choice = p + bias if bias is not None else p.copy()
    tokens, experts = p.shape
    if method != "greedy" and c["n_group"] > 1:
        grouped = np.sort(choice.reshape(tokens, c["n_group"], -1), -1)
        score = grouped[..., -2:].sum(-1) if method == "noaux_tc" else grouped[..., -1]
        drop = np.argsort(-score, -1, kind="stable")[:, c["topk_group"] :]
        mask = np.zeros((tokens, c["n_group"]), bool)
        np.put_along_axis(mask, drop, True, 1)
        choice = np.where(np.repeat(mask, experts // c["n_group"], 1), -np.inf, choice)
    top = np.argsort(-choice, -1, kind="stable")[:, : c["num_experts_per_tok"]]
    top = top if given is None else given
    w = np.take_along_axis(p, top, 1)
    if c["norm_topk_prob"]:
        w = w / (w.sum(-1, keepdims=True) + 1e-20)
    return top, w * c["routed_scaling_factor"]


def forward(c, t, ids, rounded=exactly, routes=None, kept=None, single=False):
    """Logits of the last position, and the routes of every MoE layer.  `rounded` is done to what
    products take, `kept` (the same, if not given) to what is added up; single: F32 products."""
    kept = kept or rounded
    heads, nope = c["num_attention_heads"], c["qk_nope_head_dim"]
    rope_dim, value, latent = c["qk_rope_head_dim"], c["v_head_dim"], c["kv_lora_rank"]
    eps, length = c["rms_norm_eps"], len(ids)
    rope = Rope(c)
    scale = (nope + rope_dim) ** -0.5 * rope.softmax
    hidden = np.triu(np.full((length, length), -np.inf), 1)
    norm = lambda x, w: rounded(x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w)
    silu = lambda x: x / (1 + np.exp(-x))
    taken = []
    kv_b = to_bf16 if c.get("fp8_activations") else exactly  # as it is kept in memory

    def linear(x, name):
        x = quantised(x) if c.get("fp8_activations") and t.is_fp8(name) else x
        if single:
            return (x.astype(np.float32) @ t(name).T.astype(np.float32)).astype(np.float64)
        return x @ t(name).T

    def mlp(name, x):
        gate, up = linear(x, name + "gate_proj.weight"), linear(x, name + "up_proj.weight")
        return kept(linear(rounded(silu(gate) * up), name + "down_proj.weight"))

    x = t("model.embed_tokens.weight")[ids]
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        attn = layer + "self_attn."
        h = norm(x, t(layer + "input_layernorm.weight"))
        if c["q_lora_rank"]:
            q = norm(linear(h, attn + "q_a_proj.weight"), t(attn + "q_a_layernorm.weight"))
            q = linear(q, attn + "q_b_proj.weight")
        else:
            q = linear(h, attn + "q_proj.weight")
        q = rounded(q).reshape(length, heads, nope + rope_dim)
        a = linear(h, attn + "kv_a_proj_with_mqa.weight")
        kv = norm(a[:, :latent], t(attn + "kv_a_layernorm.weight")) @ kv_b(t(attn + "kv_b_proj.weight")).T
        kv = rounded(kv).reshape(length, heads, nope + value)
        s = np.einsum("ihd,jhd->hij", q[..., :nope], kv[..., :nope])
        s = s + np.einsum("ihd,jd->hij", rounded(rope(q[..., nope:])), rounded(rope(a[:, latent:])))
        o = np.einsum("hij,jhd->ihd", rounded(softmax(s * scale + hidden)), kv[..., nope:])
        x = kept(x + linear(rounded(o).reshape(length, -1), attn + "o_proj.weight"))

        h = norm(x, t(layer + "post_attention_layernorm.weight"))
        if i < c["first_k_dense_replace"]:
            x = kept(x + mlp(layer + "mlp.", h))
            continue
        bias = layer + "mlp.gate.e_score_correction_bias"
        top, w = route(c, h @ t(layer + "mlp.gate.weight").T, t(bias) if bias in t.header else None,
                       routes[len(taken)] if routes else None)
        taken.append(top)
        y = mlp(layer + "mlp.shared_experts.", h)
        for e in np.unique(top):
            row, slot = np.where(top == e)
            y[row] += w[row, slot][:, None] * mlp(layer + f"mlp.experts.{e}.", h[row])
        x = kept(x + y)
    return norm(x[-1], t("model.norm.weight")) @ t("lm_head.weight").T, taken


def distance(a, b):
    return round(float(np.linalg.norm(a - b) / np.linalg.norm(b)), 5)


def passes(c, t, ids):
    """The exact pass, and one that says how far arithmetic alone may stray.  Quantised rows are
    quantised from BF16, by definition: there the other one differs in the precision of sums."""
    if c["fp8_activations"]:
        logits, routes = forward(c, t, ids, to_bf16, None, exactly)
        return logits, forward(c, t, ids, to_bf16, routes, exactly, True)[0], routes
    logits, routes = forward(c, t, ids)
    return logits, forward(c, t, ids, to_bf16, routes)[0], routes


LEAST_ERROR = 0.0005  # of sums in another order, where the second pass finds none


def case(c, t, ids, steps):
    out = {"prompt": list(ids), "greedy": [], "margins": []}
    match = 0
    for step in range(steps):
        logits, coarse, routes = passes(c, t, np.array(ids))
        best = np.sort(logits)[-2:]
        match += int(coarse.argmax() == logits.argmax())
        out["greedy"].append(int(logits.argmax()))
        out["margins"].append(round(float(best[1] - best[0]), 4))
        if step == 0:
            out["logits_first"] = [round(float(v), 6) for v in logits]
            out["bf16_rel_err_first"] = max(distance(coarse, logits), LEAST_ERROR)
        ids.append(out["greedy"][-1])
    out["logits_last"] = [round(float(v), 6) for v in logits]
    out["bf16_rel_err_last"] = max(distance(coarse, logits), LEAST_ERROR)
    out["bf16_argmax_match"] = match
    out["routes"] = [layer.tolist() for layer in routes]
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("dir")
    ap.add_argument("out")
    ap.add_argument("--override", default="{}")
    ap.add_argument("--steps", type=int, default=24)
    ap.add_argument("--lengths", default="1,7,33,150")
    ap.add_argument("--seed", type=int, default=5)
    ap.add_argument("--prompt", help="token ids with commas between, instead of random ones")
    ap.add_argument("--fp8-activations", action="store_true")
    a = ap.parse_args()
    config = json.load(open(a.dir + "/config.json"))
    config.update(json.loads(a.override), fp8_activations=a.fp8_activations)
    tensors, rng = Checkpoint(a.dir), np.random.default_rng(a.seed)
    prompts = [[int(i) for i in rng.integers(0, config["vocab_size"], int(n))] for n in a.lengths.split(",")]
    if a.prompt:
        prompts = [[int(i) for i in a.prompt.split(",")]]
    cases = [case(config, tensors, list(p), a.steps) for p in prompts]
    json.dump({"model": a.dir.rstrip("/").split("/")[-1], "seed": a.seed,
               "override": json.loads(a.override), "fp8_activations": a.fp8_activations, "cases": cases}, open(a.out, "w"))


if __name__ == "__main__":
    main()
