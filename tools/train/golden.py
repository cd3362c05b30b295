#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden data from transformers, in the format `fathom verify --golden` reads.

    golden.py MODEL_DIR OUT.json

The checkpoint's BF16 weights are computed with in FP32; a second pass in BF16 (rotary frequencies
kept in FP32) says how far BF16 arithmetic may stray.
"""
import argparse
import json
import random

import torch
import transformers
from tokenizers import Tokenizer

import chat_format
import tasks

STEPS = 24
LENGTHS = (1, 7, 33, 400)  # of random ids, after the real prompts


def load(directory, dtype):
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=dtype)
    frequencies = [(m, m.inv_freq) for m in model.modules() if hasattr(m, "inv_freq")]
    exact = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    for (m, _), n in zip(frequencies, [m for m in exact.modules() if hasattr(m, "inv_freq")]):
        assert n.inv_freq.dtype == torch.float32
        m.inv_freq = n.inv_freq
    return model.eval()


@torch.no_grad()
def last_logits(model, ids):
    return model(torch.tensor([ids]), use_cache=False).logits[0, -1].float()


def rounded(logits):
    return [round(float(v), 5) for v in logits]


def case(exact, coarse, prompt):
    ids, match = list(prompt), 0
    out = {"prompt": list(prompt), "greedy": [], "margins": []}
    for step in range(STEPS):
        logits, near = last_logits(exact, ids), last_logits(coarse, ids)
        top = logits.topk(2)
        out["greedy"].append(int(top.indices[0]))
        out["margins"].append(round(float(top.values[0] - top.values[1]), 4))
        match += int(near.argmax()) == out["greedy"][-1]
        if step == 0:
            out["logits_first"] = rounded(logits)
            out["bf16_rel_err_first"] = round(float((near - logits).norm() / logits.norm()), 5)
        ids.append(out["greedy"][-1])
    return out | {"logits_last": rounded(logits), "bf16_argmax_match": match}


def prompts(tok, vocab):
    rng = random.Random(17)
    for make in list(tasks.MIXTURE)[::4]:
        s = tasks.draw(rng, make, held_out=True)
        yield tok.encode(chat_format.render_prompt(s["messages"], s["tools"], json.dumps)).ids
    for n in LENGTHS:
        yield [rng.randrange(vocab) for _ in range(n)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("dir")
    ap.add_argument("out")
    a = ap.parse_args()
    tok = Tokenizer.from_file(a.dir + "/tokenizer.json")
    exact, coarse = load(a.dir, torch.float32), load(a.dir, torch.bfloat16)
    cases = [case(exact, coarse, p) for p in prompts(tok, exact.config.vocab_size)]
    json.dump(
        {
            "model": "fathom-tiny", "seed": 17, "transformers": transformers.__version__,
            "cases": cases
        }, open(a.out, "w"))
    print("bf16 error", [c["bf16_rel_err_first"] for c in cases], "agree",
          [c["bf16_argmax_match"] for c in cases])


if __name__ == "__main__":
    main()
