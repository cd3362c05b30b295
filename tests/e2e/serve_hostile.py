#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Malicious and broken clients: the server goes on answering."""
import json
import random
import socket
import struct
import threading
import time

from serve_lib import Server, run_all, same

ASK = {"text": "Hello", "sampling_params": {"max_new_tokens": 4, "temperature": 0}}
LONG = json.dumps({"text": "Hello", "stream": True,
                   "sampling_params": {"max_new_tokens": 4000, "temperature": 0, "ignore_eos": True}}).encode()


def head(length, path="/generate"):
    return b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (path.encode(), length)


def read_all(sock):
    data = b""
    try:
        while part := sock.recv(65536):
            data += part
    except OSError:
        pass
    return data


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def alive(s, answer=[]):
    r = s.post("/generate", ASK)
    answer.append(r["text"])
    same(r["text"], answer[0])


def test_half_requests(s):
    held = []
    for text in (b"", b"G", b"POST /generate HTTP/1.1\r\n", head(100), head(100) + b'{"text"', b"\r\n" * 50):
        for _ in range(20):
            c = s.raw()
            c.sendall(text)
            held.append(c)
    alive(s)
    for i, c in enumerate(held):
        c.close() if i % 2 else reset(c)


def test_garbage(s):
    rng = random.Random(1)
    for i in range(200):
        c = s.raw()
        try:
            c.sendall(rng.randbytes(rng.randrange(1, 3000)) + (b"\r\n\r\n" if i % 2 else b""))
            if i % 4 == 1:
                assert b"HTTP/1.1 4" in read_all(c)
        except OSError:
            pass
        c.close()
    alive(s)


def test_smuggling(s):
    for lines in (b"Content-Length: 5\r\nContent-Length: 6", b"Content-Length: 5\r\nTransfer-Encoding: chunked",
                  b"Transfer-Encoding: identity", b"Content-Length: 0x5", b"Content-Length : 5"):
        c = s.raw()
        c.sendall(b"POST /generate HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n\r\nhello")
        reply = read_all(c)
        assert reply.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), reply
        c.close()


def test_100_megabytes(s):
    block = b"x" * (1 << 20)
    for first in (head(100 << 20), b"POST /generate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6400000\r\n"):
        c = s.raw()
        c.sendall(first)
        try:
            for _ in range(100):
                c.sendall(block)
        except OSError:
            pass
        reply = read_all(c)
        assert not reply or reply.startswith(b"HTTP/1.1 413"), reply
        c.close()
    c = s.raw()  # announced but not sent: refused at once
    c.sendall(head(100 << 20))
    assert read_all(c).startswith(b"HTTP/1.1 413")
    alive(s)


def test_long_headers(s):
    for text in (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000):
        c = s.raw()
        try:
            c.sendall(text)
        except OSError:
            pass
        reply = read_all(c)
        assert not reply or b" 431 " in reply.split(b"\r\n")[0], reply[:100]
        c.close()
    alive(s)


def test_bad_json(s):
    deep = b"[" * 1000000
    for body in (b"\xff\xfe", b'{"text": "\xc3"}', b'{"text": "\xed\xa0\x80"}', deep, b'{"a":' * 100000, b"1e999999", b'{"text": 1e309}',
                 b'{"text": "a", "text": "b"}', b"\x00" * 1000, b'{"text": "' + b"\\u0000" * 100 + b'"}'):
        status, _, data = s.ask("POST", "/generate", body)
        assert status in (200, 400), (status, body[:30])
        json.loads(data)
    same(s.ask("POST", "/generate", json.dumps({"text": ["a"] * 5000}))[0], 400)
    same(s.ask("POST", "/generate", json.dumps({"text": "a", "sampling_params": {"n": 100000}}))[0], 400)
    same(s.ask("POST", "/v1/chat/completions", json.dumps({"messages": [{"role": "user", "content": "x"}] * 20000}))[0], 400)
    alive(s)


def test_disconnect_storm(s):
    def storm(seed):
        rng = random.Random(seed)
        for _ in range(60):
            c = s.raw()
            c.sendall(head(len(LONG)) + LONG)
            if rng.random() < 0.5:
                c.recv(rng.randrange(1, 2000))
            reset(c) if rng.random() < 0.5 else c.close()

    threads = [threading.Thread(target=storm, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    s.wait_idle(20)
    same(s.metric("num_used_tokens"), 0)
    alive(s)


def test_slow_writers_and_readers(s):
    slow = [s.raw() for _ in range(30)]
    for c in slow:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.sendall(head(len(LONG)) + LONG)
    for i in range(10):
        for c in slow[:10]:
            c.recv(1)
        alive(s)
        time.sleep(0.02)
    for c in slow:
        c.close()
    s.wait_idle(20)


def test_pipelined_flood(s):
    c = s.raw()
    one = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
    sender = threading.Thread(target=lambda: c.sendall(one * 5000))
    sender.start()
    data = b""
    while data.count(b"HTTP/1.1 200") < 5000:
        part = c.recv(1 << 20)
        assert part
        data += part
    sender.join()
    c.close()
    alive(s)


def test_memory_did_not_grow(s):
    def resident():
        with open(f"/proc/{s.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * 4096

    def work():
        for _ in range(300):
            s.post("/generate", ASK)
            s.stream("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4})

    work()
    before = resident()
    work()
    work()
    grown = resident() - before
    assert grown < 2 << 20, grown


if __name__ == "__main__":
    with Server() as server:
        alive(server)
        run_all(globals(), server)
        alive(server)
