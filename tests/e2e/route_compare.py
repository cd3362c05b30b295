#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Measures the router; not a test.
route_compare.py PROGRAM WHAT [DIRECTORY OF SGLANG-ROUTER'S ENVIRONMENT [NAME=VALUE...]]

    arrivals  prompts with one of many system prompts, which together need most of four workers' pools; they come
              at random times, fewer than the machine could answer.  Cached tokens and time to the first token,
              for our router, SGLang's, and one worker with a pool four times as large, round by round
    chat      the same for conversations, each turn of which is the whole text so far and a question
    burst     groups of requests with a common prefix from clients that always ask, so that the machine is
              always busy; caches are empty at the start, so each prefix is computed in the first second
    latency   what routers add to a short request at 64 clients"""
import http.client
import json
import multiprocessing
import os
import random
import statistics
import sys
import threading
import time
import types

import route_load
from route_lib import Router, Worker
from route_sglang import SglangRouter
from serve_lib import HERE

TINY = ["--model-path", os.path.join(HERE, "..", "..", "models", "fathom-tiny"), "--quiet", "--threads", "1"]


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


# --- random arrivals ---------------------------------------------------------

# 28 prefixes of 440 to 1,760 tokens take about 80 % of four pools of 8,192; popularity follows Zipf's law.
ARRIVALS = {"seed": 1, "rounds": 1, "pool": 8192, "rate": 30.0, "prompts": 1200, "groups": 28, "zipf": 1.0, "kept": 0, "clients": 0,
            "prefix_words": 450, "prefix_spread": 2.0, "question_words": 20, "turns": 1, "think": 0.0, "output": 8,
            "others": "", "slowest": 0}  # slowest: so many requests are shown
# Eight applications; about 45 conversations of 300 to 800 tokens are under way at any time.
CHAT = dict(ARRIVALS, prompts=1000, groups=8, zipf=0.0, prefix_words=100, prefix_spread=1.0, question_words=40, turns=6,
            think=1.5, output=16)
# 16 prefixes of about 1,370 tokens take 70 % of the four pools.
BURST = dict(ARRIVALS, groups=16, questions=20, clients=32, prefix_words=700, prefix_spread=1.0)


def options(defaults):
    given = dict(word.split("=", 1) for word in sys.argv[4:])
    assert given.keys() <= defaults.keys(), f"options: {' '.join(defaults)}"
    return types.SimpleNamespace(**{k: type(v)(given.get(k, v)) for k, v in defaults.items()})


class Direct:
    """A worker without a router."""

    def __init__(self, worker):
        self.port = worker.port

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        pass


def systems(workers, large, others):
    """Each with a function that starts it; others: further builds of our router, separated by commas."""
    python = os.path.join(sys.argv[3], "bin", "python") if len(sys.argv) > 3 else None
    ours = {"fathom route cache_aware": lambda: Router(workers)}
    ours |= {f"{p} cache_aware": lambda p=p: Router(workers, program=p) for p in others.split(",") if p}
    theirs = {f"sglang-router {p}": lambda p=p: SglangRouter(python, workers, p) for p in ("cache_aware", "round_robin")}
    return ours | (theirs if python else {}) | {"one worker, pool x 4": lambda: Direct(large)}


def flush(workers):
    for w in workers:
        w.wait_idle()
        w.ask("POST", "/flush_cache")


def warm(worker, pool):
    """The first requests of a process are slower, and so is the first use of each of its pages."""
    for i in range(pool // 1000 + 1):
        worker.post("/generate", {"text": f"{i} " + "time year people way " * 150, "sampling_params": {"max_new_tokens": 1}})


def stolen():
    """Seconds that the hypervisor gave to others while this machine had work, since boot, summed over processors."""
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def measure(start, workers, seed, o):
    """Cached tokens, their share, p50 and p99 of the time to the first token in ms, seconds, stolen seconds."""
    with start() as system:
        flush(workers)
        time.sleep(0.5)  # until routers know it
        lost = stolen()
        results, seconds = route_load.run(system.port, seed, o)
        lost = stolen() - lost
    prompt, cached = sum(r[0] for r in results), sum(r[1] for r in results)
    ttft = [1000 * r[2] for r in results]
    began = min(r[3] for r in results)
    for i in sorted(range(len(ttft)), key=lambda i: -ttft[i])[:o.slowest]:
        print(f"     after {results[i][3] - began:6.2f} s: {results[i][1]:5} of {results[i][0]:5} tokens cached, {ttft[i]:6.1f} ms")
    return cached, 100 * cached / prompt, quantile(ttft, 0.5), quantile(ttft, 0.99), seconds, lost


def show_round(number, name, got):
    print(f"{number:3}  {name:26} {got[0]:8} cached ({got[1]:4.1f} %)   TTFT p50 {got[2]:6.1f} p99 {got[3]:7.1f} ms   "
          f"{got[4]:5.1f} s, {got[5]:4.2f} s stolen", flush=True)


def show_medians(table):
    ours = table["fathom route cache_aware"]
    print("medians, and the median over rounds of ours / theirs")
    for name, rounds in table.items():
        middle = [statistics.median(r[k] for r in rounds) for k in (0, 2, 3)]
        ratio = [statistics.median(a[k] / b[k] for a, b in zip(ours, rounds)) for k in (0, 2, 3)]
        print(f"     {name:26} {middle[0]:8.0f} ({ratio[0]:5.3f})   TTFT p50 {middle[1]:6.1f} ms ({ratio[1]:5.3f})   "
              f"p99 {middle[2]:7.1f} ms ({ratio[2]:5.3f})")


def compare(defaults):
    o = options(defaults)
    workers = [Worker(model=TINY + ["--max-total-tokens", str(o.pool)]) for _ in range(4)]
    large = Worker("--threads", "2", model=TINY + ["--max-total-tokens", str(4 * o.pool)])
    for w in [*workers, large]:
        warm(w, 4 * o.pool if w == large else o.pool)
    start = systems(workers, large, o.others)
    table = {name: [] for name in start}
    try:
        for number in range(o.rounds):
            turn = (o.seed + number) % len(start)  # each router is first in some round
            for name in [*start, *start][turn:turn + len(start)]:
                table[name].append(measure(start[name], [*workers, large], o.seed + number, o))
                show_round(o.seed + number, name, table[name][-1])
        show_medians(table)
    finally:
        for w in [*workers, large]:
            w.process.kill()


def arrivals():
    compare(ARRIVALS)


def burst():
    compare(BURST)


def chat():
    compare(CHAT)


# --- added latency -----------------------------------------------------------

SHORT = json.dumps({"text": "Hello", "sampling_params": {"max_new_tokens": 1, "temperature": 0}})


def clients_of(ports, n, seconds, pause, out):
    """n closed-loop clients in this process, each on a connection of its own."""
    times = [[] for _ in ports]

    def client(i):
        rng = random.Random(i + os.getpid())
        lines = [http.client.HTTPConnection("127.0.0.1", p, timeout=60) for p in ports]
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            time.sleep(rng.expovariate(1 / pause))
            for k in rng.sample(range(len(lines)), len(lines)):  # one behind the other, so that they meet the same machine
                c = lines[k]
                began = time.perf_counter()
                c.request("POST", "/generate", SHORT, {"Content-Type": "application/json"})
                c.getresponse().read()
                times[k].append(time.perf_counter() - began)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    out.put(times)


def latency():
    worker = Worker("--threads", "1")
    names, running = ["direct", "fathom route"], [Router([worker])]
    if len(sys.argv) > 3:
        names.append("sglang-router")
        running.append(SglangRouter(os.path.join(sys.argv[3], "bin", "python"), [worker], "cache_aware"))
    ports, replies = [worker.port, *(r.port for r in running)], multiprocessing.Queue()
    processes = [multiprocessing.Process(target=clients_of, args=(ports, 16, 30, 0.5, replies)) for _ in range(4)]
    for p in processes:
        p.start()
    times = [sum(lists, []) for lists in zip(*(replies.get() for _ in processes))]
    for p in processes:
        p.join()
    ms = [(statistics.median(x) * 1000, quantile(x, 0.99) * 1000) for x in times]
    print(f"{len(times[0])} requests each way, 64 clients")
    for name, (p50, p99) in zip(names, ms):
        print(f"{name:14} p50 {p50:6.2f} p99 {p99:6.2f} ms, added {p50 - ms[0][0]:6.2f} and {p99 - ms[0][1]:6.2f} ms")
    for r in [*running, worker]:
        r.process.kill()


if __name__ == "__main__":
    {"arrivals": arrivals, "burst": burst, "chat": chat, "latency": latency}[sys.argv[2]]()
