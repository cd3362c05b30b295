#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Measures how many streams one router holds; not a test.
route_streams.py PROGRAM [STREAMS [EVENTS [GAP]]]

Every stream gets EVENTS events (0: one, and the stream does not end), GAP seconds apart, from one of four stand-in
workers; clients check each byte.  While all are open the resident memory of the router and its share of a core are
read, and how late events reach the clients.  A stream takes two of the router's descriptors: `ulimit -Hn`."""
import asyncio
import json
import multiprocessing
import os
import random
import re
import resource
import sys
import time

from route_lib import Router
from serve_lib import HERE, same

STREAMS, EVENTS, GAP = (float(a) for a in (sys.argv[2:] + ["10000", "6", "10"][len(sys.argv) - 2:]))
STREAMS, EVENTS = int(STREAMS), int(EVENTS)
WORKERS, CLIENTS = 4, 2
TINY = os.path.join(HERE, "..", "..", "models", "fathom-tiny")
FEED = b"fathom-cache 1 epoch=1 version=1 page_size=16 pages=4096 all=0 prefill_rate=1e6 row_seconds=1e-6 load=0\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nx-fathom-frames: 1\r\n\r\n"


def raise_limit():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def event(stream, k):
    """When it was sent goes with it: the processes share a clock."""
    return b"data: %d %d %.6f\n\n" % (stream, k, time.monotonic())


# --- a worker ----------------------------------------------------------------

def plain(body):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


class Replier(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.got, self.sent = transport, b"", 0

    def data_received(self, data):
        self.got += data
        head, end, body = self.got.partition(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        if not end or len(body) < (int(length[1]) if length else 0):
            return
        self.got = b""
        loop = asyncio.get_running_loop()
        if head.startswith(b"POST"):
            self.stream = int(re.search(rb"number (\d+)", body)[1])
            self.transport.write(HEAD)
            loop.call_later(GAP * random.random(), self.send)
        elif b"/cache_feed" in head:
            loop.call_later(1, self.transport.write, plain(FEED))
        else:
            self.transport.write(plain(b"{}"))

    def send(self):
        data = event(self.stream, self.sent)
        self.sent += 1
        is_last = self.sent == EVENTS
        if is_last:
            data += b"data: [DONE]\n\n"
        frame = b"%d %d 0:5\n%s" % (len(data), self.sent, data)
        self.transport.write(b"%x\r\n%s\r\n" % (len(frame), frame) + (b"0\r\n\r\n" if is_last else b""))
        if EVENTS and not is_last:
            asyncio.get_running_loop().call_later(GAP, self.send)


def work(ports):
    async def serve():
        server = await asyncio.get_running_loop().create_server(Replier, "127.0.0.1", 0, backlog=4096)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()
    raise_limit()
    asyncio.run(serve())


class Worker:
    def __init__(self):
        ports = multiprocessing.Queue()
        self.process = multiprocessing.Process(target=work, args=(ports,), daemon=True)
        self.process.start()
        self.port = ports.get()

    def url(self):
        return f"http://127.0.0.1:{self.port}"


# --- clients -----------------------------------------------------------------

class Reader(asyncio.Protocol):
    """The bytes of one stream and, for its events, how long they were under way."""

    def __init__(self, number, request):
        self.number, self.request, self.data, self.late = number, request, b"", []
        self.begun, self.ended = (asyncio.get_running_loop().create_future() for _ in range(2))

    def connection_made(self, transport):
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data):
        now = time.monotonic()
        self.late += [now - float(t) for t in re.findall(rb"data: \d+ \d+ (\S+)", data)]
        self.data += data
        if not self.begun.done() and b"\r\n\r\n" in self.data:
            self.begun.set_result(None)
        if self.data.endswith(b"\r\n0\r\n\r\n") and not self.ended.done():
            self.ended.set_result(None)

    def connection_lost(self, why):
        for f in (self.begun, self.ended):
            if not f.done():
                f.set_exception(OSError(f"stream {self.number} was lost: {why} {self.data[-200:]}"))


def request_of(number):
    body = json.dumps({"messages": [{"role": "user", "content": "word " * 500 + f"number {number}"}], "stream": True}).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def dechunked(reply):
    rest, body = reply.partition(b"\r\n\r\n")[2], b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body, rest = body + rest[:int(size, 16)], rest[int(size, 16) + 2:]
    return body


async def read_streams(port, numbers, begun):
    loop, readers = asyncio.get_running_loop(), []
    for i, n in enumerate(numbers):
        readers.append((await loop.create_connection(lambda n=n: Reader(n, request_of(n)), "127.0.0.1", port))[1])
        if i % 50 == 49:
            await readers[-1].begun
    await asyncio.gather(*(r.begun for r in readers))
    begun.put(len(readers))
    await asyncio.gather(*(r.ended for r in readers))
    for r in readers:
        events = dechunked(r.data).split(b"\n\n")
        same([e.rsplit(b" ", 1)[0] for e in events[:-2]], [b"data: %d %d" % (r.number, k) for k in range(EVENTS)], r.number)
        same(events[-2:], [b"data: [DONE]", b""], r.number)
    return [t for r in readers for t in r.late]


def client(port, numbers, begun, results):
    raise_limit()
    try:
        results.put(asyncio.run(read_streams(port, numbers, begun)))
    except (AssertionError, OSError) as e:
        begun.put(0)
        results.put(e)


# --- the router --------------------------------------------------------------

def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * 4096 / 1e6


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def look(router, seconds):
    """Memory in MB, share of a core."""
    pid, began, used = router.process.pid, time.monotonic(), cpu_seconds(router.process.pid)
    time.sleep(seconds)
    return resident(pid), (cpu_seconds(pid) - used) / (time.monotonic() - began)


def main():
    begun, results = multiprocessing.Queue(), multiprocessing.Queue()
    with Router([Worker() for _ in range(WORKERS)], "--model-path", TINY, fast=()) as router:
        most = int((re.findall(r"at most (\d+) connections", "".join(router.log)) or [STREAMS + 8])[0]) - 8  # for this program's own
        n = min(STREAMS, most)
        before = resident(router.process.pid)
        for i in range(CLIENTS):
            multiprocessing.Process(target=client, args=(router.port, range(i, n, CLIENTS), begun, results), daemon=True).start()
        began = time.monotonic()
        same(sum(begun.get() for _ in range(CLIENTS)), n)
        same(router.count("running_requests"), n)
        opened = time.monotonic() - began
        memory, share = look(router, min(10, GAP))
        print(f"{n} streams, opened in {opened:.1f} s: {memory:.1f} MB resident ({before:.1f} before), "
              f"{100 * share:.1f} % of a core at {n / GAP if EVENTS else 0:.0f} events/s", flush=True)
        if not EVENTS:
            os._exit(router.process.kill() or 0)
        got = [results.get() for _ in range(CLIENTS)]
        same([g for g in got if isinstance(g, Exception)], [])
        late = sorted(sum(got, []))
        same((router.count("running_requests"), router.count("failed_total"), router.count("retries_total")), (0, 0, 0))
        print(f"all ended, {len(late)} events, each byte as sent; from worker to client p50 {1000 * late[len(late) // 2]:.2f} "
              f"p99 {1000 * late[int(0.99 * len(late))]:.2f} ms; {resident(router.process.pid):.1f} MB resident behind them")


if __name__ == "__main__":
    main()
