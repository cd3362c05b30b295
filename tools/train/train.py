#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains fathom-tiny from nothing, on one GPU, in minutes.

    train.py --corpus CORPUS.txt.xz --tokenizer tokenizer.json --out DIR

Two phases: everything together, then the MTP layer alone, against the finished model and on more
plain text.  DIR gets the checkpoint in the published layout, loss.csv and measured.json.
"""
import argparse
import json
import os
import time

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import data
import export
import measure
from model import Config, Tiny

BIAS_SPEED = 1e-3  # of the routers' balancing
MTP_WEIGHT = 0.5
DRAFT_TEXT_SHARE, DRAFT_RATE = 0.6, 0.5  # second phase: share of documents, part of the learning rate


def draft_loss(opinion, draft, weight):
    """Logits of the main model for the token after next, and of the MTP layer."""
    return -((opinion.softmax(-1) * draft.log_softmax(-1)).sum(-1) * weight).sum() / weight.sum()


def losses(lm_head, h, r, ids, weight):
    """Weighted loss of the next token, and of the MTP layer against the main model's own opinion of
    the token after it, which is what a draft has to guess."""
    logits = lm_head(h).float()
    w1 = weight[:, 1:-1]
    main = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:-1].flatten(),
                           reduction="none").view_as(w1)
    mtp = draft_loss(logits.detach()[:, 1:], lm_head(r[:, :-1]).float(), weight[:, 2:-1])
    return (main * w1).sum() / w1.sum(), mtp


def rebalance(model, loads):
    """Experts above the mean load become less attractive, the others more."""
    with torch.no_grad():
        for router, load in zip(model.routers(), loads):
            router.e_score_correction_bias += BIAS_SPEED * torch.sign(load.mean() - load)


def optimizer_of(module, lr, device):
    matrices = [p for p in module.parameters() if p.ndim == 2]
    vectors = [p for p in module.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), fused=device == "cuda")


def rate(progress):
    """Up over the first percent, level, and down to nothing over the last half."""
    return min(1.0, progress / 0.01 + 0.01) * min(1.0, 2 * (1 - progress) + 1e-3)


def arguments():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--corpus", required=True)
    ap.add_argument("--tokenizer", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--steps", type=int, default=6400)
    ap.add_argument("--draft-steps", type=int, default=3000, help="of the MTP layer alone")
    ap.add_argument("--from", dest="start", help="a checkpoint to begin the second phase with")
    ap.add_argument("--rows", type=int, default=128)
    ap.add_argument("--length", type=int, default=1024)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--workers", type=int, default=14)
    ap.add_argument("--limit",
                    type=float,
                    default=1e9,
                    help="seconds; the schedule is squeezed into it")
    ap.add_argument("--no-compile", action="store_true")
    ap.add_argument("--per-task",
                    type=int,
                    default=128,
                    help="exercises per kind in the last measurement")
    return ap.parse_args()


class Trainer:

    def __init__(self, a):
        self.a, self.began = a, time.time()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(a.seed)
        torch.set_float32_matmul_precision("high")
        self.tok = Tokenizer.from_file(a.tokenizer)
        self.corpus = data.Corpus(a.corpus, self.tok)
        self.model = Tiny(Config(vocab=self.tok.get_vocab_size())).to(self.device)
        self.losses, self.draft_loss = losses, draft_loss
        if not a.no_compile:
            self.losses, self.draft_loss = torch.compile(losses), torch.compile(draft_loss)
            for layer in [*self.model.layers, self.model.mtp]:
                layer.compile()

    def progress(self, step, steps):
        return min(1.0, max(step / steps, (time.time() - self.began) / self.a.limit))

    def batches(self, steps, seed, share):
        """Batch by batch with the learning rate that goes with it."""
        a = self.a
        stream = data.Stream(a.tokenizer, self.corpus, a.rows, a.length + 2, steps, seed, a.workers,
                             share)
        for step, (ids, weight) in enumerate(stream):
            progress = self.progress(step, steps)
            if progress >= 1:
                break
            ids = torch.from_numpy(ids).to(self.device, torch.long)
            yield step, ids, torch.from_numpy(weight).to(self.device,
                                                         torch.float32), a.lr * rate(progress)
        stream.close()

    def update(self, loss, module, lr):
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def step(self, ids, weight, lr):
        with torch.autocast(self.device, torch.bfloat16):
            h, r, loads = self.model(ids[:, :-1])
            main, mtp = self.losses(self.model.lm_head, h, r, ids, weight)
        self.update(main + MTP_WEIGHT * mtp, self.model, lr)
        rebalance(self.model, loads)
        return main.detach(), mtp.detach(), loads

    def draft_step(self, ids, weight, lr):
        model, x = self.model, ids[:, :-1]
        with torch.autocast(self.device, torch.bfloat16):
            with torch.no_grad():
                h, cos, sin = model.trunk(x)
                opinion = model.lm_head(h)[:, 1:].float()
            r, _ = model.mtp(model.embed_tokens(x[:, 1:]), h, cos, sin)
            loss = self.draft_loss(opinion, model.lm_head(r[:, :-1]).float(), weight[:, 2:-1])
        self.update(loss, model.mtp, lr)
        return loss.detach()

    def report(self, step, main, mtp, loads, log):
        spent = time.time() - self.began
        worst = max(float(load.max() / load.mean()) for load in loads)
        tokens = (step + 1) * self.a.rows * self.a.length
        log.write(f"{step},{tokens},{spent:.1f},{main:.4f},{mtp:.4f},{worst:.2f}\n")
        log.flush()
        if step % 100 == 0:
            print(
                f"step {step} {tokens / 1e6:.0f} Mtok {spent:.0f} s loss {main:.4f} mtp {mtp:.4f} "
                f"busiest expert {worst:.2f}x",
                flush=True)

    def run(self):
        self.optimizer = optimizer_of(self.model, self.a.lr, self.device)
        with open(self.a.out + "/loss.csv", "w") as log:
            log.write("step,tokens,seconds,loss,mtp_loss,busiest\n")
            for step, ids, weight, lr in self.batches(self.a.steps, self.a.seed, data.TEXT_SHARE):
                main, mtp, loads = self.step(ids, weight, lr)
                if step % 10 == 0:
                    self.report(step, float(main), float(mtp), loads, log)

    def run_draft(self):
        """The main model is finished and rounded; only the MTP layer learns."""
        self.model.requires_grad_(False)
        self.model.mtp.requires_grad_(True)
        self.optimizer = optimizer_of(self.model.mtp, self.a.lr, self.device)
        for step, ids, weight, lr in self.batches(self.a.draft_steps, self.a.seed + 1,
                                                  DRAFT_TEXT_SHARE):
            loss = self.draft_step(ids, weight, lr * DRAFT_RATE)
            if step % 100 == 0:
                print(f"draft step {step} {time.time() - self.began:.0f} s loss {loss:.4f}",
                      flush=True)


def main():
    a = arguments()
    os.makedirs(a.out, exist_ok=True)
    t = Trainer(a)
    if a.start:
        export.load(t.model, a.start)
    else:
        t.run()
    export.round_to_bf16(t.model)
    t.run_draft()
    export.round_to_bf16(t.model)
    export.export(t.model, a.out)
    print(f"trained in {time.time() - t.began:.0f} s", flush=True)
    found = measure.measure(t.model, t.tok, t.corpus, t.device, a.per_task)
    found["parameters"] = sum(p.numel() for p in t.model.parameters())
    found["seconds"] = time.time() - t.began
    json.dump(found, open(a.out + "/measured.json", "w"), indent=1)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
