#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Measures the router; not a test.  
route_compare.py PROGRAM WHAT [DIRECTORY OF SGLANG-ROUTER'S ENVIRONMENT [GROUPS,QUESTIONS,WORDS,WORDS,CLIENTS,POOL]]

    prefix    groups of requests with a common prefix, over four workers whose pool holds a part of the
              prefixes: cached tokens and time to the first token, for our policies, SGLang's router, and
              one worker with a pool four times as large
    latency   what the router adds to a short request at 64 clients
    idle      resident memory with 2,000 streams that say nothing"""
import asyncio
import http.client
import json
import multiprocessing
import os
import random
import statistics
import sys
import threading
import time

from route_lib import Router, Worker
from route_sglang import SglangRouter
from serve_lib import HERE

TINY = ["--model-path", os.path.join(HERE, "..", "..", "models", "fathom-tiny"), "--quiet", "--threads", "1"]
GROUPS, QUESTIONS, PREFIX_WORDS, WORDS, CLIENTS, POOL = 16, 20, 700, 20, 32, 8192
if len(sys.argv) > 4:
    GROUPS, QUESTIONS, PREFIX_WORDS, WORDS, CLIENTS, POOL = map(int, sys.argv[4].split(","))


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


# --- common prefixes ---------------------------------------------------------

def make_load():
    rng = random.Random(3)
    words = "time year people way day man thing woman life child world school state family student group country".split()
    prefixes = [" ".join(rng.choices(words, k=PREFIX_WORDS)) for _ in range(GROUPS)]
    asks = [f"{p} {' '.join(rng.choices(words, k=WORDS))}" for p in prefixes for _ in range(QUESTIONS)]
    rng.shuffle(asks)
    return asks


def ask(port, text):
    """Prompt tokens, cached ones, seconds to the first token."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    began = time.perf_counter()
    c.request("POST", "/generate", json.dumps({"text": text, "stream": True, "sampling_params": {
        "max_new_tokens": 8, "temperature": 0, "ignore_eos": True}}), {"Content-Type": "application/json"})
    r = c.getresponse()
    assert r.status == 200, (r.status, r.read())
    first = r.readline()
    ttft = time.perf_counter() - began
    info = json.loads(first[6:])["meta_info"]
    r.read()
    c.close()
    return info["prompt_tokens"], info["cached_tokens"], ttft


def run_load(port, asks):
    todo, results, lock = list(reversed(asks)), [], threading.Lock()

    def client():
        while True:
            with lock:
                if not todo:
                    return
                text = todo.pop()
            got = ask(port, text)
            with lock:
                results.append(got)

    began = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results, time.perf_counter() - began


def show(name, results, seconds):
    prompt, cached = sum(r[0] for r in results), sum(r[1] for r in results)
    ttft = [r[2] * 1000 for r in results]
    print(f"{name:28} {cached:8} of {prompt} tokens cached ({100 * cached / prompt:5.1f} %)   TTFT p50 {quantile(ttft, 0.5):7.1f} "
          f"p99 {quantile(ttft, 0.99):7.1f} ms   {seconds:5.1f} s", flush=True)
    return cached


def flush(workers):
    for w in workers:
        w.wait_idle()
        w.ask("POST", "/flush_cache")


def prefix():
    asks = make_load()
    one = Worker(model=TINY + ["--max-total-tokens", str(4 * POOL)])
    ask(one.port, "warm")
    flush([one])
    best = show("one worker, pool x 4", *run_load(one.port, asks))
    one.process.kill()
    workers = [Worker(model=TINY + ["--max-total-tokens", str(POOL)]) for _ in range(4)]
    for policy in ("cache_aware", "round_robin"):
        flush(workers)
        with Router(workers, "--policy", policy) as router:
            got = show(f"fathom route {policy}", *run_load(router.port, asks))
            if policy == "cache_aware":
                print(f"{'':28} {100 * got / best:.1f} % of one worker with a pool four times as large")
    for policy in ("cache_aware", "round_robin") if len(sys.argv) > 3 else ():
        python = os.path.join(sys.argv[3], "bin", "python")
        with SglangRouter(python, workers, policy) as router:
            flush(workers)
            show(f"sglang-router {policy}", *run_load(router.port, asks))
    for w in workers:
        w.process.kill()


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
    with Router([worker]) as router:
        ask_of = multiprocessing.Queue()
        processes = [multiprocessing.Process(target=clients_of, args=((worker.port, router.port), 16, 30, 0.5, ask_of))
                     for _ in range(4)]
        for p in processes:
            p.start()
        direct, routed = [], []
        for _ in processes:
            a, b = ask_of.get()
            direct += a
            routed += b
        for p in processes:
            p.join()
        ms = [(statistics.median(x) * 1000, quantile(x, 0.99) * 1000) for x in (direct, routed)]
        print(f"{len(direct)} requests each way, 64 clients: direct p50 {ms[0][0]:.2f} p99 {ms[0][1]:.2f} ms, through the router "
              f"p50 {ms[1][0]:.2f} p99 {ms[1][1]:.2f} ms, added {ms[1][0] - ms[0][0]:.2f} and {ms[1][1] - ms[0][1]:.2f} ms")
    worker.process.kill()


# --- idle streams ------------------------------------------------------------

async def idle_worker(reader, writer):
    head = await reader.readuntil(b"\r\n\r\n")
    if b"POST" not in head:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()
        return
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
                 b"x-fathom-frames: 1\r\n\r\n11\r\n9 1 0:5\ndata: x\n\n\r\n")
    await asyncio.sleep(3600)


async def idle_client(port, body):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    await reader.readuntil(b"data: x\n\n")
    return writer


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * 4096 / 1e6


def idle(n=2000):
    class Fake:
        def url(self):
            return f"http://127.0.0.1:{self.port}"

    async def run():
        fake = Fake()
        server = await asyncio.start_server(idle_worker, "127.0.0.1", 0, backlog=1024)
        fake.port = server.sockets[0].getsockname()[1]
        router = await asyncio.to_thread(Router, [fake])
        body = json.dumps({"messages": [{"role": "user", "content": "word " * 500}], "stream": True}).encode()
        before = resident(router.process.pid)
        streams = []
        for i in range(0, n, 50):
            streams += await asyncio.gather(*(idle_client(router.port, body) for _ in range(min(50, n - i))))
        print(f"{len(streams)} idle streams: {resident(router.process.pid):.1f} MB resident, {before:.1f} MB before")
        router.process.kill()
        os._exit(0)

    asyncio.run(run())


if __name__ == "__main__":
    {"prefix": prefix, "latency": latency, "idle": idle}[sys.argv[2]]()
