#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Many streaming clients at once: every token arrives once, in order, and is
the one the offline engine gives.  serve_load.py PROGRAM [CLIENTS]"""
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time

from serve_lib import ENV, FATHOM, MODEL, TOKENIZER, Server, same

N = int(sys.argv[2]) if len(sys.argv) > 2 else 512
SIZE = MODEL + ["--max-total-tokens", "65536"]


def offline():
    """Prompts and greedy answers from fathom bench."""
    with tempfile.TemporaryDirectory() as d:
        details = os.path.join(d, "details")
        subprocess.run([FATHOM, "bench", "--skip-warmup", *SIZE, "--dataset-name", "random", "--num-prompts", str(N),
                        "--random-input-len", "60", "--random-output-len", "24", "--output-details", details],
                       check=True, env=ENV, stdout=subprocess.DEVNULL)
        with open(details, encoding="utf-8") as f:
            return [json.loads(line) for line in f]


async def read_stream(port, path, body):
    """The JSON events of one streamed request, over a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    data = json.dumps(dict(body, stream=True)).encode()
    writer.write(b"POST %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" %
                 (path.encode(), len(data)) + data)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    text = b""
    while True:
        size = int(await reader.readline(), 16)
        text += (await reader.readexactly(size + 2))[:-2]
        if not size:
            break
    writer.close()
    events = [e for e in text.decode().split("\n\n") if e]
    same(events.pop(), "data: [DONE]")
    return [json.loads(e[6:]) for e in events]


async def one_generate(port, row):
    n = len(row["output_ids"])
    events = await read_stream(port, "/generate", {
        "input_ids": row["prompt_ids"], "sampling_params": {"max_new_tokens": n, "temperature": 0, "ignore_eos": True}})
    sizes = [len(e["output_ids"]) for e in events]
    assert sizes == sorted(set(sizes)) and sizes[-1] == n, sizes  # each event has more than the last
    for e, size in zip(events, sizes):
        same(e["output_ids"], row["output_ids"][:size])
    same(events[-1]["meta_info"]["finish_reason"], {"type": "length", "length": n})


async def one_completion(port, row, words):
    n = len(row["output_ids"])
    events = await read_stream(port, "/v1/completions", {
        "prompt": row["prompt_ids"], "max_tokens": n, "temperature": 0, "ignore_eos": True,
        "stream_options": {"include_usage": True}})
    same("".join(e["choices"][0]["text"] for e in events[:-1]), words)
    same(events[-1]["usage"]["completion_tokens"], n)


async def crowd(port, rows, words):
    await asyncio.gather(*(one_generate(port, r) if i % 2 else one_completion(port, r, w)
                           for i, (r, w) in enumerate(zip(rows, words))))


if __name__ == "__main__":
    rows = offline()
    same(len(rows), N)
    with Server(model=SIZE + TOKENIZER) as s:
        words = s.post("/detokenize", {"tokens": [r["output_ids"] for r in rows]})["text"]
        began = time.time()
        asyncio.run(crowd(s.port, rows, words))
        took = time.time() - began
        n_token = sum(len(r["output_ids"]) for r in rows)
        same(s.metric("generation_tokens_total"), n_token)
        same(s.metric("num_requests_total"), N)
        same(s.metric("num_aborted_requests_total"), 0)
        s.wait_idle()
        same(s.metric("num_used_tokens"), 0)
        print(f"ok {N} clients, {n_token} tokens, {took:.2f} s")
