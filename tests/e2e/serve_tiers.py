#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A server over a directory of prefixes: the next turn of a chat after its end, or its death, is answered
from there, with the bits of a server that computes everything."""
import pathlib
import signal
import tempfile
import time

from serve_lib import Server, run_all, same

STORY = " ".join(f"{i} ships sailed to the island number {i * 7 % 31}." for i in range(60))
PAGE = 16
LOADS = ("--hicache-debug-demote",)  # a model this small is computed faster than it is loaded


def files(where):
    return ("--page-size", str(PAGE), "--hicache-storage-backend", "file", "--hicache-storage-dir", where)


def ask(s, text):
    reply = s.post("/generate", {"text": text, "sampling_params": {"max_new_tokens": 40, "temperature": 0, "ignore_eos": True}})
    return reply["text"], reply["meta_info"]


def whole_pages(info):
    """The last token has no keys yet: it was chosen and not computed."""
    return (info["prompt_tokens"] + info["completion_tokens"] - 1) // PAGE


def wait_written(s, where, n_page):
    """Pages are queued for writing after the reply, when the engine is idle: an empty queue alone says little."""
    state, end = None, time.time() + 20
    while state != (n_page, 0) and time.time() < end:
        time.sleep(0.02)
        state = len(list(pathlib.Path(where).glob("*/*/*.page"))), s.metric("hicache_storage_queue")
    same(state, (n_page, 0))


def two_turns():
    with Server("--disable-radix-cache") as s:
        first = ask(s, STORY)[0]
        second = STORY + first + " And then?"
        return first, second, ask(s, second)[0]


def end(s, where, n_page):
    s.stop()


def kill(s, where, n_page):
    wait_written(s, where, n_page)
    s.process.send_signal(signal.SIGKILL)
    s.process.communicate()


def test_next_turn_after_the_end(first, second, third):
    for leave in (end, kill):
        with tempfile.TemporaryDirectory() as d:
            s = Server(*files(d))
            text, info = ask(s, STORY)
            same(text, first)
            n_page = whole_pages(info)
            leave(s, d, n_page)
            with Server(*files(d), *LOADS) as s:
                text, info = ask(s, second)
                same(text, third)
                stored = info["cached_tokens_details"]["storage"]
                assert (n_page - 3) * PAGE < stored <= n_page * PAGE, (leave.__name__, stored, n_page)
                same(info["cached_tokens"], stored)
                same(s.metric("cached_tokens_storage_total"), stored)
                assert s.metric("hicache_storage_read_bytes_total") > 0
                same(s.metric("hicache_storage_on"), 1)
                same(s.metric("hicache_loading"), 0)


def test_two_servers_on_one_directory(first, second, third):
    with tempfile.TemporaryDirectory() as d:
        with Server(*files(d), *LOADS) as a, Server(*files(d), *LOADS) as b:
            same([ask(s, STORY)[0] for s in (a, b)], [first] * 2)
            same([ask(s, second)[0] for s in (b, a)], [third] * 2)
        with Server(*files(d), *LOADS) as s:
            same(ask(s, second)[0], third)
            same(s.metric("hicache_storage_misses_total"), 0)


if __name__ == "__main__":
    run_all(globals(), *two_turns())
