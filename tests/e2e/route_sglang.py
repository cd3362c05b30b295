#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""SGLang's own router in front of fathom serve: what it passes on is what the server says.
Installs it into a virtual environment of its own; without a package index the test is skipped (77).
route_sglang.py PROGRAM DIRECTORY-FOR-THE-ENVIRONMENT"""
import http.client
import json
import socket
import subprocess
import sys
import time

from route_lib import Worker
from serve_lib import Server, run_all, same
from venv_lib import environment

CHAT = {"messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 24, "temperature": 0, "model": "m"}
GENERATE = {"text": "Once upon a time", "sampling_params": {"max_new_tokens": 24, "temperature": 0}}


class SglangRouter(Server):
    def __init__(self, python, workers, policy="cache_aware"):
        with socket.socket() as s, socket.socket() as t:
            s.bind(("127.0.0.1", 0))
            t.bind(("127.0.0.1", 0))
            self.port, metrics = s.getsockname()[1], t.getsockname()[1]
        self.process = subprocess.Popen(
            [python, "-m", "sglang_router.launch_router", "--host", "127.0.0.1", "--port", str(self.port), "--policy", policy,
             "--prometheus-port", str(metrics), "--log-level", "error", "--worker-urls", *(w.url() for w in workers)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.time() + 60
        while time.time() < end:
            try:
                if self.ask("GET", "/health")[0] == 200 and self.ask("POST", "/generate", GENERATE)[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.2)
        raise SystemExit("SGLang's router did not start")

    def ask(self, method, path, body=None, headers=None):
        return super().ask(method, path, body, {"Content-Type": "application/json", **(headers or {})})

    def __exit__(self, kind, value, trace):
        self.process.kill()
        self.process.wait()


def plain(reply):
    return {k: v for k, v in reply.items() if k in ("choices", "text", "output_ids")}


def text_of(events):
    return "".join((c["delta"].get("content") or "") + (c["delta"].get("reasoning_content") or "")
                   for e in events for c in e["choices"])


def test_chat(router, worker):
    same(plain(router.post("/v1/chat/completions", CHAT)), plain(worker.post("/v1/chat/completions", CHAT)))
    same(text_of(router.stream("/v1/chat/completions", CHAT)), text_of(worker.stream("/v1/chat/completions", CHAT)))


def test_generate(router, worker):
    same(plain(router.post("/generate", GENERATE)), plain(worker.post("/generate", GENERATE)))
    same(router.stream("/generate", GENERATE)[-1]["text"], worker.stream("/generate", GENERATE)[-1]["text"])


def test_models(router, worker):
    same(json.loads(router.get("/v1/models"))["data"][0]["id"], json.loads(worker.get("/v1/models"))["data"][0]["id"])


if __name__ == "__main__":
    interpreter = environment(sys.argv[2], "sglang-router==0.3.2")
    pair = [Worker(), Worker()]
    try:
        with SglangRouter(interpreter, pair) as running:
            run_all(globals(), running, pair[0])
    finally:
        for w in pair:
            w.process.kill()
