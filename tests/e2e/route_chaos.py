#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Workers are killed and stopped at random moments while many clients stream: no request fails,
and every text is that of an undisturbed run, byte for byte.
route_chaos.py PROGRAM [ROUNDS [CLIENTS [WORKERS [SEED]]]]"""
import collections
import json
import random
import signal
import sys
import threading
import time

from route_lib import Router, Worker
from route_stream import joined, read_stream
from serve_lib import same

ROUNDS, CLIENTS, WORKERS, SEED = (int(a) for a in (sys.argv[2:] + ["4", "16", "3", "7"][len(sys.argv) - 2:]))
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
SCHEMA = {"type": "array", "items": {"type": "integer"}, "minItems": 8}


def make_asks():
    rng = random.Random(1)
    words = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()
    asks = []
    for i in range(24):
        text = " ".join(rng.choices(words, k=rng.randrange(5, 200)))
        n = rng.randrange(50, 250)
        how = [{"temperature": 0}, {"temperature": 1.1, "seed": i}][i % 2]
        chat = {"messages": [{"role": "user", "content": text}], "max_tokens": n, **how}
        asks.append([
            ("/generate", {"text": text, "sampling_params": {
                "max_new_tokens": n, "ignore_eos": True, "temperature": how["temperature"], "sampling_seed": i}}),
            ("/v1/chat/completions", dict(chat, ignore_eos=True, n=1 + i % 2)),
            ("/v1/chat/completions", dict(chat, tools=[TOOL], tool_choice="required")),
            ("/v1/chat/completions", dict(chat, response_format={
                "type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}})),
            ("/v1/messages", chat),
            ("/v1/completions", {"prompt": text, "max_tokens": n, "stop": ["zq"], "ignore_eos": True, **how}),
        ][i % 6])
    return asks


def content(path, events):
    return events[-1]["text"] if path == "/generate" else joined(events)


class Clients:
    def __init__(self, port, asks, want):
        self.port, self.asks, self.want = port, asks, want
        self.stopping, self.n, self.failures = False, 0, collections.Counter()
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(CLIENTS)]
        for t in self.threads:
            t.start()

    def work(self, seed):
        rng = random.Random(seed)
        while not self.stopping:
            i = rng.randrange(len(self.asks))
            path, body = self.asks[i]
            try:
                got = content(path, read_stream(self.port, path, body)[0])
                if got != self.want[i]:
                    self.failures[f"{path} {i}: another text"] += 1
            except Exception as e:  # pylint: disable=broad-except
                self.failures[f"{path}: {type(e).__name__} {str(e)[:200]}"] += 1
            self.n += 1

    def join(self):
        self.stopping = True
        for t in self.threads:
            t.join()


def disturb(router, victim, rng):
    time.sleep(rng.random())
    if rng.random() < 0.5:
        victim.kill()
        time.sleep(rng.random())
        victim.again()
    else:
        victim.kill(signal.SIGSTOP)
        time.sleep(rng.uniform(0.5, 6))
        victim.kill(signal.SIGCONT)
    router.wait_up(WORKERS, 120)


def main():
    asks = make_asks()
    workers = [Worker("--deterministic", "--threads", "1") for _ in range(WORKERS)]
    try:
        want = [content(p, read_stream(workers[0].port, p, b)[0]) for p, b in asks]
        with Router(workers) as router:
            for (p, b), w in zip(asks, want):
                assert content(p, read_stream(router.port, p, b)[0]) == w, f"undisturbed {p} {b}"
            began, clients, rng = time.time(), Clients(router.port, asks, want), random.Random(SEED)
            for i in range(ROUNDS):
                disturb(router, workers[rng.randrange(WORKERS)], rng)
                print(f"round {i + 1}: {clients.n} requests, {sum(clients.failures.values())} failed, "
                      f"{router.count('resumed_streams_total'):.0f} streams resumed, {time.time() - began:.0f} s", flush=True)
            clients.join()
            resumed = router.count("resumed_streams_total")
        same(dict(clients.failures), {})
        assert resumed > 0 or ROUNDS < 3, "no stream was resumed: this tested nothing"
        print(json.dumps({"rounds": ROUNDS, "clients": CLIENTS, "requests": clients.n, "resumed": resumed, "failed": 0}))
    finally:
        for w in workers:
            w.process.send_signal(signal.SIGCONT)
            w.process.kill()


if __name__ == "__main__":
    main()
