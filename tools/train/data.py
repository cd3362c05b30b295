# SPDX-License-Identifier: Apache-2.0
"""Training rows: exercises, stories and documents, packed end to end, made while the GPU works."""
import collections
import lzma
import multiprocessing
import os
import random
import re
import threading

import numpy as np
from tokenizers import Tokenizer

import chat_format
import tasks
import tasks_letters
import tasks_talk

PROMPT_WEIGHT, ANSWER_WEIGHT = 1, 10  # a prompt is mostly the user's whim: learn the answers
TEXT_SHARE = 0.15  # of the tokens, in the main phase


def encode_answer(tok, text):
    """Spans between marks go letter by letter."""
    ids = []
    for i, part in enumerate(text.split("\x01")):
        for piece in part if i % 2 else [part]:
            ids += tok.encode(piece).ids
    return ids


def encode_sample(tok, s, dump):
    prompt = tok.encode(chat_format.render_prompt(s["messages"], s["tools"], dump)).ids
    answer = encode_answer(tok, chat_format.render_answer(s))
    return prompt + answer, [PROMPT_WEIGHT] * len(prompt) + [ANSWER_WEIGHT] * len(answer)


def frequent_words(texts, least=20):
    count = collections.Counter(w for t in texts for w in re.findall(r"\b[a-z]{3,12}\b", t))
    return sorted(w for w, n in count.items() if n >= least)


class Corpus:
    """Documents as ids; the last in fifty are held out."""

    def __init__(self, path, tok):
        texts = lzma.open(path, "rt", encoding="utf-8").read().split("\n\f\n")
        every = [d.ids for d in tok.encode_batch(texts)]
        cut = len(every) - len(every) // 50
        self.train, self.held_out = every[:cut], every[cut:]
        self.size = np.cumsum([len(d) for d in self.train])
        self.words = frequent_words(texts[:cut])


def draw_text(rng, tok, corpus, most=900):
    """A piece of a document, long ones likelier, or a story."""
    if rng.random() < 0.1:
        ids = tok.encode(tasks_talk.story_text(rng)).ids
    else:
        d = corpus.train[int(
            np.searchsorted(corpus.size, rng.randrange(int(corpus.size[-1])), "right"))]
        at = rng.randrange(max(1, len(d) - most + 1))
        ids = d[at:at + most]
    return [0] + ids + [1]


def pack(seed, rows, length, share, tok, corpus):
    """rows of `length` ids and their weights, `share` of the tokens from documents; what is cut at a
    row's end is lost."""
    rng = random.Random(seed)
    ids, weights, text = [], [], 0
    while len(ids) < rows * length:
        if text < share * len(ids):
            new = draw_text(rng, tok, corpus)
            ids, text = ids + new, text + len(new)
            weights += [ANSWER_WEIGHT] * len(new)
        else:
            i, w = encode_sample(tok, tasks.draw_training(rng), tasks.dumper(rng))
            ids += i
            weights += w
    shape = (rows, length)
    n = rows * length
    return np.array(ids[:n], np.int16).reshape(shape), np.array(weights[:n],
                                                                np.uint8).reshape(shape)


worker = {}


def worker_init(tokenizer_path, corpus):
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tasks_letters.more_words = corpus.words
    worker.update(tok=Tokenizer.from_file(tokenizer_path), corpus=corpus)


def worker_pack(job):
    return pack(*job, worker["tok"], worker["corpus"])


class Stream:
    """Batches in a fixed order, whatever the number of workers."""

    def __init__(self,
                 tokenizer_path,
                 corpus,
                 rows,
                 length,
                 steps,
                 seed,
                 workers,
                 share=TEXT_SHARE,
                 part=32):
        assert rows % part == 0
        self.per_step = rows // part
        context = multiprocessing.get_context("fork")
        self.pool = context.Pool(workers, worker_init, (tokenizer_path, corpus))
        self.slots = threading.Semaphore(4 * workers)  # finished parts must not pile up
        self.closed = False
        self.parts = self.pool.imap(worker_pack, self.jobs(steps, seed, part, length, share))

    def jobs(self, steps, seed, part, length, share):
        for i in range(steps * self.per_step):
            self.slots.acquire()
            if self.closed:
                return
            yield seed * 1_000_003 + i, part, length, share

    def __iter__(self):
        while True:
            got = [p for _, p in zip(range(self.per_step), self.parts)]
            if len(got) < self.per_step:
                return
            for _ in got:
                self.slots.release()
            yield np.concatenate([g[0] for g in got]), np.concatenate([g[1] for g in got])

    def close(self):
        self.closed = True
        self.slots.release()
        self.pool.terminate()
