# SPDX-License-Identifier: Apache-2.0
"""What a trained model can do, measured on held-out exercises and documents.

With the right answer fed in, the model writes that answer by itself (greedily) exactly when its
best token is right at every step; so one forward pass tells the share of answers it gets right.
"""
import random
from collections import defaultdict

import torch

import data
import tasks

ROWS = 64


def padded(batch, device):
    longest = max(len(ids) for ids, _ in batch) + 2
    ids = torch.full((len(batch), longest), 2)
    mask = torch.zeros(len(batch), longest, dtype=torch.bool)  # tokens that count
    for i, (row, weights) in enumerate(batch):
        ids[i, :len(row)] = torch.tensor(row)
        mask[i, :len(row)] = torch.tensor(weights) == data.ANSWER_WEIGHT
    return ids.to(device), mask.to(device)


@torch.no_grad()
def best_tokens(model, ids):
    """The main model's choice for token i+1, and the MTP layer's for token i+2, at every i."""
    with torch.autocast(ids.device.type, torch.bfloat16):
        h, r, _ = model(ids)
        logits = model.lm_head(h)
        return logits.float(), model.lm_head(r).argmax(-1)


def agreement(main, mtp, counted):
    """How often the MTP layer at i chose what the main model chooses at i+1; counted: of token i+2."""
    same = (main[:, 1:] == mtp[:, :-1]) & counted
    return int(same.sum()), int(counted.sum())


def exercises(model, tok, device, per_task=128, seed=1234):
    """{task: share of answers right}, and the MTP layer's agreement on them."""
    rng, right, hits, total = random.Random(seed), defaultdict(list), 0, 0
    for make in tasks.MIXTURE:
        drawn = [tasks.draw(rng, make, held_out=True) for _ in range(per_task)]
        encoded = [data.encode_sample(tok, s, tasks.dumper(rng)) for s in drawn]
        for at in range(0, per_task, ROWS):
            ids, mask = padded(encoded[at:at + ROWS], device)
            logits, mtp = best_tokens(model, ids)
            main = logits.argmax(-1)
            wrong = (main != ids[:, 1:]) & mask[:, 1:]
            right[make.__name__] += (~wrong.any(1)).tolist()
            hit, n = agreement(main, mtp, mask[:, 2:])
            hits, total = hits + hit, total + n
    return {name: sum(r) / len(r) for name, r in right.items()}, hits / total


def documents(model, held_out, device, length=512, most=256):
    """Loss per token on held-out documents, and the MTP layer's agreement there."""
    rows = [[0] + d[i:i + length] for d in held_out for i in range(0, len(d) - length // 2, length)]
    loss = hits = total = 0
    for at in range(0, min(len(rows), most), ROWS):
        ids, mask = padded([(r, [data.ANSWER_WEIGHT] * len(r)) for r in rows[at:at + ROWS]], device)
        logits, mtp = best_tokens(model, ids)
        lost = torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                                 ids[:, 1:].flatten(),
                                                 reduction="none")
        loss += float((lost * mask[:, 1:].flatten()).sum()) / int(mask[:, 1:].sum())
        hit, n = agreement(logits.argmax(-1), mtp, mask[:, 2:])
        hits, total = hits + hit, total + n
    return loss / len(range(0, min(len(rows), most), ROWS)), hits / total


def measure(model, tok, corpus, device, per_task=128):
    model.eval()
    torch.compiler.set_stance("force_eager")  # every batch has another shape
    right, on_exercises = exercises(model, tok, device, per_task)
    loss, on_text = documents(model, corpus.held_out, device)
    return {
        "right": right, "text_loss": loss, "mtp_agreement_exercises": on_exercises,
        "mtp_agreement_text": on_text
    }
