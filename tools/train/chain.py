# SPDX-License-Identifier: Apache-2.0
"""The MTP layer as a chain: link 1 starts from the main model's state, every later one from the
state its predecessor left.

Link j at index i starts from the state of link j-1 at i-1 and token i+1, and guesses token i+2.  It
attends to what lies in the cache then: keys of link 1 up to i-j+1, and one key of each later link
up to its own.
"""
import torch

LINKS = 3


def shifted(x, by):
    """x [B, heads, T, width], each row where the row `by` later was; the first rows are zero."""
    return torch.nn.functional.pad(x, (0, 0, by, 0))[..., :x.shape[2], :] if by else x


def attend(q, links, scale):
    """links: keys and values of link 1 .. j; q is of link j."""
    j, length = len(links), q.shape[2]
    k, v = links[0]
    at = torch.arange(length, device=q.device)
    hidden = at[None, :] > at[:, None] - (j - 1)
    scores = [(q @ k.transpose(-1, -2) * scale).float().masked_fill(hidden, -torch.inf)]
    later = [(shifted(a, j - m), shifted(b, j - m)) for m, (a, b) in enumerate(links[1:], 2)]
    for a, _ in later:
        scores.append((q * a).sum(-1, keepdim=True).float() * scale)
    p = torch.cat(scores, -1).softmax(-1).to(v.dtype)
    o = p[..., :length] @ v
    for m, (_, b) in enumerate(later):
        o = o + p[..., length + m:length + m + 1] * b
    return o


def run(mtp, embedded, h, cos, sin, n_link=LINKS):
    """embedded [B, T]: of tokens 1 .. T; h: the main model's states 0 .. T-1.  Yields the state of
    each link [B, T]; of link j the first j-1 are meaningless."""
    links, attn, state = [], mtp.layer.self_attn, h
    for _ in range(n_link):
        u = mtp.enter(embedded, state)
        q, k, v = attn.project(mtp.layer.input_layernorm(u), cos, sin)
        links.append((k, v))
        u, _ = mtp.layer.feed_forward(u + attn.join(attend(q, links, attn.scale)))
        r = mtp.norm(u)
        yield r
        state = torch.nn.functional.pad(r, (0, 0, 1, 0))[:, :-1]


def loss(model, ids, weight, h):
    """Mean over the links of the cross entropy with the main model's own distribution.

    ids and weight [B, T+1], h [B, T].  Only tokens of full weight count."""
    cos, sin = model.angles(h.shape[1])
    counted = (weight[:, 2:] >= weight.max()).clone()  # of token i+2
    with torch.no_grad():
        opinion = model.lm_head(h[:, 1:][counted]).float().softmax(-1)
    total = 0
    for r in run(model.mtp, model.embed_tokens(ids[:, 1:]), h, cos, sin):
        guess = model.lm_head(r[:, :-1][counted]).float().log_softmax(-1)
        total = total - (opinion * guess).sum(-1).mean()
    return total / LINKS


@torch.no_grad()
def accepted(model, ids, weight, h):
    """Of chains that start where the text is what the main model itself would write: how many there
    are, and how many had their first 1 .. LINKS drafts right."""
    cos, sin = model.angles(h.shape[1])
    best = model.lm_head(h).argmax(-1)  # [B, T]: of token i+1
    own = best == ids[:, 1:]
    n = h.shape[1] - LINKS
    start = (weight[:, 2:2 + n] >= weight.max()) & (weight[:, 1 + LINKS:] >= weight.max())[:, :n]
    for d in range(LINKS):
        start &= own[:, d:d + n]
    right, found = start.clone(), []
    states = run(model.mtp, model.embed_tokens(ids[:, 1:]), h, cos, sin)
    for d, r in enumerate(states):
        right = right & (model.lm_head(r[:, d:d + n]).argmax(-1) == best[:, d + 1:d + 1 + n])
        found.append(int(right.sum()))
    return int(start.sum()), found
