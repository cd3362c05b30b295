#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What fathom serve writes to stderr never holds it up, and signals let it end in order."""
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import time

from serve_lib import ENV, FATHOM, MODEL, TOKENIZER, Server, run_all, same

ASK = {"text": "Hello", "sampling_params": {"max_new_tokens": 2, "temperature": 0}}
LOUD = [a for a in MODEL if a != "--quiet"] + TOKENIZER + ["--max-total-tokens", "65536"]
F_SETPIPE_SZ = 1031


class Deaf(Server):
    """A server whose stderr is a pipe that is not read."""

    def __init__(self, *args):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        self.process = subprocess.Popen([FATHOM, "serve", "--port", str(self.port), *LOUD, *args], env=ENV,
                                        stdin=subprocess.DEVNULL, stderr=writer)
        os.close(writer)
        end = time.time() + 30
        while True:
            try:
                self.raw().close()
                break
            except ConnectionRefusedError:
                assert time.time() < end and self.process.poll() is None
                time.sleep(0.02)

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.stop()
        else:
            self.process.kill()
            self.process.wait()

    def connect(self, timeout=10):
        return super().connect(timeout)

    def stop(self, want=0):
        began = time.time()
        self.process.send_signal(signal.SIGTERM)
        same(self.process.wait(timeout=10), want)
        assert time.time() - began < 5, time.time() - began
        os.close(self.reader)


def test_a_reader_that_stalls_holds_nobody_up():
    with Deaf("--log-requests", "--decode-log-interval", "1") as s:
        for i in range(700):
            same(s.ask("POST", "/generate", json.dumps(ASK))[0], 200, i)
            same(s.ask("GET", "/health")[0], 200, i)
        assert s.metric("log_lines_dropped_total") > 100


def test_dropped_lines_are_reported_when_the_reader_goes_on():
    with Deaf("--log-requests", "--decode-log-interval", "1") as s:
        for _ in range(700):
            s.ask("POST", "/generate", json.dumps(ASK))
        dropped = s.metric("log_lines_dropped_total")
        text = b""
        while b"log lines were dropped" not in text:
            text += os.read(s.reader, 65536)
        told = re.search(rb"^fathom: (\d+) log lines were dropped: [^\n]*\n", text, re.M)
        assert int(told[1]) - int(dropped) in (0, 1), (told[1], dropped)  # the line about asking for the metric may fit
        access = [json.loads(line) for line in text.splitlines()[:-1] if line.startswith(b"{")]
        assert len(access) > 100 and all(a["status"] == 200 for a in access)  # whole lines
        s.post("/generate", ASK)
        rest = b""
        while b'"path":"/generate"' not in rest:
            rest += os.read(s.reader, 65536)


def test_a_reader_that_left():
    with Deaf("--log-requests") as s:
        os.close(s.reader)
        for _ in range(20):
            same(s.ask("POST", "/generate", json.dumps(ASK))[0], 200)
        assert s.metric("log_lines_dropped_total") >= 19
        s.reader = os.open("/dev/null", os.O_RDONLY)


def test_the_end_is_logged():
    with Server() as s:
        s.post("/generate", ASK)
    text = "".join(s.log)
    assert "fathom serve: told to stop; 0 requests under way end first\n" in text, text
    assert text.endswith("fathom serve: stopped; 1 answers were given\n"), text


def test_a_hang_up_drains():
    long = {"text": "Hello", "stream": True,
            "sampling_params": {"max_new_tokens": 1200, "temperature": 0, "ignore_eos": True}}
    with Server() as s:
        c = s.connect()
        c.request("POST", "/generate", json.dumps(long), {"Content-Type": "application/json"})
        r = c.getresponse()
        assert r.readline().startswith(b"data: ")
        for _ in range(3):  # a shell and the kernel both send one
            s.process.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        text = r.read().decode()
        assert '"type":"length"' in text and text.endswith("data: [DONE]\n\n"), text[-300:]
        same(s.process.wait(timeout=20), 0)
        assert "the terminal is gone" in s.process.stderr.read()
        s.stop = lambda: None


def test_nohup_is_respected():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Server() as s:
            s.process.send_signal(signal.SIGHUP)
            time.sleep(0.2)
            s.post("/generate", ASK)
    finally:
        signal.signal(signal.SIGHUP, before)


if __name__ == "__main__":
    run_all(globals())
