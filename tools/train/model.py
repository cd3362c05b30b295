# SPDX-License-Identifier: Apache-2.0
"""DeepSeek-V3 in plain PyTorch, small enough to read and to train in minutes.

Every expert computes every token and the router's weights cut out those not chosen: at this size
one dense product beats gathering.  Names of parameters are close to the published ones; export.py
does the rest.
"""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab: int = 3072
    hidden: int = 256
    layers: int = 7  # the first is dense
    heads: int = 8
    q_rank: int = 128
    kv_rank: int = 128
    nope: int = 32
    rope: int = 32
    value: int = 32
    dense_inter: int = 512
    moe_inter: int = 64
    experts: int = 16
    groups: int = 4
    top_groups: int = 2
    top_experts: int = 4
    routed_scale: float = 2.5
    eps: float = 1e-6
    rope_base: float = 10000.0
    yarn_factor: float = 4.0
    yarn_length: int = 512
    beta_fast: float = 32.0
    beta_slow: float = 1.0


def yarn_magnitude(c):
    return 0.1 * math.log(c.yarn_factor) + 1


def rope_frequencies(c):
    corr = lambda turns: c.rope * math.log(c.yarn_length /
                                           (2 * math.pi * turns)) / (2 * math.log(c.rope_base))
    low = max(math.floor(corr(c.beta_fast)), 0)
    high = min(math.ceil(corr(c.beta_slow)), c.rope - 1)
    i = torch.arange(c.rope // 2, dtype=torch.float32)
    ramp = ((i - low) / max(high - low, 1e-3)).clamp(0, 1)
    f = c.rope_base ** (-2 * i / c.rope)
    return f / c.yarn_factor * ramp + f * (1 - ramp)


def rotate(x, cos, sin):
    """x [B, T, heads, rope], adjacent pairs; cos and sin [T, 1, rope/2]"""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x.dtype)


def linear(n_in, n_out, gain=1.0):
    layer = nn.Linear(n_in, n_out, bias=False)
    nn.init.normal_(layer.weight, std=0.6 * gain / math.sqrt(n_in))
    return layer


class Norm(nn.Module):

    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        x32 = x.float()
        return (x32 * torch.rsqrt(x32.square().mean(-1, keepdim=True) + self.eps) * self.weight).to(
            x.dtype)


class Attention(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q_a_proj = linear(c.hidden, c.q_rank)
        self.q_a_layernorm = Norm(c.q_rank, c.eps)
        self.q_b_proj = linear(c.q_rank, c.heads * (c.nope + c.rope))
        self.kv_a_proj_with_mqa = linear(c.hidden, c.kv_rank + c.rope)
        self.kv_a_layernorm = Norm(c.kv_rank, c.eps)
        self.kv_b_proj = linear(c.kv_rank, c.heads * (c.nope + c.value))
        self.o_proj = linear(c.heads * c.value, c.hidden, 1 / math.sqrt(2 * c.layers))
        self.scale = (c.nope + c.rope) ** -0.5 * yarn_magnitude(c) ** 2

    def project(self, x, cos, sin):
        """Queries, keys [B, heads, T, nope + rope] and values [B, heads, T, value]"""
        c, (batch, length, _) = self.c, x.shape
        q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x))).view(batch, length, c.heads, -1)
        latent, k_rope = self.kv_a_proj_with_mqa(x).split((c.kv_rank, c.rope), -1)
        kv = self.kv_b_proj(self.kv_a_layernorm(latent)).view(batch, length, c.heads, -1)
        q_nope, q_rope = q.split((c.nope, c.rope), -1)
        k_nope, v = kv.split((c.nope, c.value), -1)
        k_rope = rotate(k_rope.unsqueeze(2), cos, sin).expand(-1, -1, c.heads, -1)
        q = torch.cat((q_nope, rotate(q_rope, cos, sin)), -1)
        k = torch.cat((k_nope, k_rope), -1)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def join(self, o):
        """o [B, heads, T, value] -> [B, T, hidden]"""
        return self.o_proj(o.transpose(1, 2).flatten(-2))

    def forward(self, x, cos, sin):
        c = self.c
        q, k, v = self.project(x, cos, sin)
        v = F.pad(v, (0, c.nope + c.rope - c.value))  # one width for the fast kernel
        o = F.scaled_dot_product_attention(q, k, v.to(q.dtype), is_causal=True, scale=self.scale)
        return self.join(o[..., :c.value])


class Mlp(nn.Module):

    def __init__(self, hidden, inter, gain):
        super().__init__()
        self.gate_proj, self.up_proj = linear(hidden, inter), linear(hidden, inter)
        self.down_proj = linear(inter, hidden, gain)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Router(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.weight = nn.Parameter(torch.randn(c.experts, c.hidden) * 0.6 / math.sqrt(c.hidden))
        self.register_buffer("e_score_correction_bias", torch.zeros(c.experts))

    def forward(self, x):
        """The experts' weights [B, T, E], zero where not chosen, and how many tokens each got."""
        c = self.c
        with torch.autocast(x.device.type, enabled=False):
            p = torch.sigmoid(x.float() @ self.weight.float().T)
        choice = p.detach() + self.e_score_correction_bias
        grouped = choice.unflatten(-1, (c.groups, -1))
        best = grouped.topk(2, -1).values.sum(-1).topk(c.top_groups, -1).indices
        keep = torch.zeros(grouped.shape[:-1], device=x.device).scatter(-1, best, 1.0).unsqueeze(-1)
        choice = grouped.masked_fill(keep == 0, -math.inf).flatten(-2)
        chosen = torch.zeros_like(p).scatter(-1, choice.topk(c.top_experts, -1).indices, 1.0)
        w = p * chosen
        return w / (w.sum(-1, keepdim=True) + 1e-20) * c.routed_scale, chosen.sum((0, 1))


class Moe(nn.Module):

    def __init__(self, c, gain):
        super().__init__()
        self.c = c
        self.gate = Router(c)
        self.experts = Mlp(c.hidden, c.experts * c.moe_inter, gain)  # all in one, expert-major
        self.shared_experts = Mlp(c.hidden, c.moe_inter, gain)

    def forward(self, x):
        c = self.c
        w, load = self.gate(x)
        h = F.silu(self.experts.gate_proj(x)) * self.experts.up_proj(x)
        h = (h.unflatten(-1, (c.experts, c.moe_inter)) * w.to(h.dtype).unsqueeze(-1)).flatten(-2)
        return self.experts.down_proj(h) + self.shared_experts(x), load


class Layer(nn.Module):

    def __init__(self, c, dense):
        super().__init__()
        gain = 1 / math.sqrt(2 * c.layers)
        self.input_layernorm, self.post_attention_layernorm = Norm(c.hidden,
                                                                   c.eps), Norm(c.hidden, c.eps)
        self.self_attn = Attention(c)
        self.mlp = Mlp(c.hidden, c.dense_inter, gain) if dense else Moe(c, gain)
        self.dense = dense

    def feed_forward(self, x):
        y = self.mlp(self.post_attention_layernorm(x))
        y, load = (y, None) if self.dense else y
        return x + y, load

    def forward(self, x, cos, sin):
        return self.feed_forward(x + self.self_attn(self.input_layernorm(x), cos, sin))


class NextNext(nn.Module):
    """The MTP layer: from the state at i and token i+1, what comes at i+2."""

    def __init__(self, c):
        super().__init__()
        self.enorm, self.hnorm = Norm(c.hidden, c.eps), Norm(c.hidden, c.eps)
        self.eh_proj = linear(2 * c.hidden, c.hidden)
        self.layer = Layer(c, dense=False)
        self.norm = Norm(c.hidden, c.eps)

    def enter(self, embedded, h):
        return self.eh_proj(torch.cat((self.enorm(embedded), self.hnorm(h)), -1))

    def forward(self, embedded, h, cos, sin):
        u, load = self.layer(self.enter(embedded, h), cos, sin)
        return self.norm(u), load


class Tiny(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed_tokens = nn.Embedding(c.vocab, c.hidden)
        nn.init.normal_(self.embed_tokens.weight, std=0.05)
        self.layers = nn.ModuleList(Layer(c, dense=i == 0) for i in range(c.layers))
        self.norm = Norm(c.hidden, c.eps)
        self.lm_head = linear(c.hidden, c.vocab, 0.5)
        self.mtp = NextNext(c)
        self.register_buffer("frequency", rope_frequencies(c), persistent=False)

    def angles(self, length):
        a = torch.arange(length, device=self.frequency.device)[:, None, None] * self.frequency
        return a.cos(), a.sin()

    def trunk(self, ids, loads=None):
        """ids [B, T+1] -> the main model's normed states [B, T], and the angles used"""
        cos, sin = self.angles(ids.shape[1] - 1)
        x = self.embed_tokens(ids[:, :-1])
        for layer in self.layers:
            x, load = layer(x, cos, sin)
            if loads is not None and load is not None:
                loads.append(load)
        return self.norm(x), cos, sin

    def forward(self, ids):
        """ids [B, T+1] -> normed states [B, T], MTP states [B, T], load of each router"""
        loads = []
        h, cos, sin = self.trunk(ids, loads)
        r, load = self.mtp(self.embed_tokens(ids[:, 1:]), h, cos, sin)
        return h, r, loads + [load]

    def routers(self):
        return [m for m in self.modules() if isinstance(m, Router)]
