#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the MTP layer of a trained model to draft chains from its own states; nothing else changes.

    train_chain.py --from DIR --corpus CORPUS.txt.xz --out DIR

One thread of a CPU is enough: every step draws new text and takes about a second.
"""
import argparse
import os
import time

import torch
from tokenizers import Tokenizer

import chain
import data
import export
import tasks_letters
from model import Config, Tiny
from train import optimizer_of, rate

TEST_STEPS = 10


def arguments():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--from", dest="start", required=True, help="the model's directory")
    ap.add_argument("--corpus", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--rows", type=int, default=4, help="of one step")
    ap.add_argument("--length", type=int, default=384)
    ap.add_argument("--text-share", type=float, default=0.3)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=31)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--limit",
                    type=float,
                    default=1e9,
                    help="seconds; the schedule is squeezed into it")
    return ap.parse_args()


class Trainer:

    def __init__(self, a):
        self.a, self.began = a, time.time()
        torch.set_num_threads(a.threads)
        self.tok = Tokenizer.from_file(a.start + "/tokenizer.json")
        self.corpus = data.Corpus(a.corpus, self.tok)
        tasks_letters.more_words = self.corpus.words
        self.model = Tiny(Config(vocab=self.tok.get_vocab_size()))
        export.load(self.model, a.start)
        self.model.requires_grad_(False)
        self.model.mtp.requires_grad_(True)

    def batch(self, seed):
        """Ids, weights and the main model's states."""
        a = self.a
        ids, weight = data.pack(seed, a.rows, a.length + 1, a.text_share, self.tok, self.corpus)
        ids = torch.from_numpy(ids).long()
        with torch.no_grad():
            h, _, _ = self.model.trunk(ids)
        return ids, torch.from_numpy(weight).int(), h

    def accept_length(self):
        """Tokens per step, and the share of chains with 1 .. LINKS right drafts."""
        total, right = 0, [0] * chain.LINKS
        for i in range(TEST_STEPS):
            n, r = chain.accepted(self.model, *self.batch(-1 - i))
            total, right = total + n, [x + y for x, y in zip(right, r)]
        return f"accept length {1 + sum(right) / total:.3f}, " + " ".join(f"{x / total:.3f}" for x in right)

    def train(self):
        a, mtp = self.a, self.model.mtp
        optimizer, began, seen = optimizer_of(mtp, a.lr, "cpu"), time.time(), []
        for step in range(a.steps):
            progress = max(step / a.steps, (time.time() - began) / a.limit)
            if progress >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = a.lr * rate(progress)
            loss = chain.loss(self.model, *self.batch(a.seed * 1_000_003 + step))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(mtp.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            seen.append(loss.item())
            if (step + 1) % 20 == 0:
                print(f"step {step + 1}, {time.time() - began:.0f} s, loss {sum(seen[-20:]) / 20:.4f}", flush=True)


def main():
    a = arguments()
    t = Trainer(a)
    print("before:", t.accept_length(), flush=True)
    t.train()
    export.round_to_bf16(t.model)
    print("after:", t.accept_length(), flush=True)
    os.makedirs(a.out, exist_ok=True)
    export.export_mtp(t.model, a.start, a.out)
    print(f"{time.time() - t.began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
