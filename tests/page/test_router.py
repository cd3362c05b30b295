#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The router's page in headless Chromium: a row per worker, and what happens to them appears without a reload.
Exit 77: this machine has no Chromium.

    test_router.py FATHOM [SHOTS]"""
import os
import signal
import sys

from browser import Browser, find_chromium
from driver import Page

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from route_lib import Router, Worker  # noqa: E402

ASK = {"text": "Hello", "sampling_params": {"max_new_tokens": 4, "temperature": 0}}
ROWS = "[...document.querySelectorAll('#rows tr')].map((r) => [...r.cells].map((c) => c.innerText.trim()))"


def state_is(p, worker, state):
    """Its row says so, in the colour that belongs to it."""
    p.wait(f"{ROWS}.some((r) => r[0] === '{worker.url()}' && r[1] === '{state}')")
    kind = p.eval(f"[...document.querySelectorAll('#rows tr')].find((r) => r.cells[0].innerText === '{worker.url()}').cells[1].className")
    assert kind == state, kind


def test_shows_workers(p, router, workers):
    p.open(p.url + "/router")
    p.wait("document.querySelectorAll('#rows tr').length === 2")
    assert [row[0] for row in p.eval(ROWS)] == [w.url() for w in workers]
    for w in workers:
        state_is(p, w, "up")
    said = p.eval("document.getElementById('summary').textContent")
    assert said.startswith("2 of 2 up") and "cache_aware" in said, said
    p.shot("router")


def test_counts_requests(p, router, workers):
    for _ in range(6):
        router.post("/generate", ASK)
    p.wait(f"{ROWS}.some((r) => r[9].endsWith(' ms'))")


def test_follows_a_worker_down_and_up(p, router, workers):
    workers[0].kill(signal.SIGKILL)
    state_is(p, workers[0], "down")
    state_is(p, workers[1], "up")
    assert p.eval("document.getElementById('summary').textContent").startswith("1 of 2 up")
    p.shot("router-down")
    workers[0].again()
    state_is(p, workers[0], "up")


def test_follows_the_table(p, router, workers):
    router.ask("POST", "/workers/2/drain")
    state_is(p, workers[1], "draining")
    router.ask("DELETE", "/workers/2")
    p.wait("document.querySelectorAll('#rows tr').length === 1")


def test_asks_for_a_key(p, workers):
    with Router([], "--worker", workers[0].url(), "--api-key", "sesame") as router:
        p.open(f"http://127.0.0.1:{router.port}/router")
        p.wait("!document.getElementById('key').hidden")
        assert "key is needed" in p.eval("document.getElementById('summary').textContent")
        p.fill("key-value", "sesame")
        p.wait("document.querySelectorAll('#rows tr').length === 1")


def test_router_gone(p, router):
    router.stop()
    p.wait("document.getElementById('summary').textContent.startsWith('no answer')")


def test_no_problems(p):
    unexpected = [x for x in p.problems if "status of 401" not in x and "ERR_CONNECTION" not in x]
    assert not unexpected, unexpected
    assert all(url.startswith("http://127.0.0.1:") for url in p.requests if url != "about:blank"), p.requests


def run(test, *args):
    test(*args)
    print("ok", test.__name__[5:].replace("_", " "), flush=True)


def main():
    chromium = find_chromium()
    if not chromium:
        print("skipped: no chromium (apt install chromium)")
        sys.exit(77)
    workers = [Worker(), Worker()]
    router = Router(workers)
    try:
        with Browser(chromium) as browser:
            p = Page(browser, f"http://127.0.0.1:{router.port}", sys.argv[2] if len(sys.argv) > 2 else None)
            for test in (test_shows_workers, test_counts_requests, test_follows_a_worker_down_and_up, test_follows_the_table):
                run(test, p, router, workers)
            run(test_asks_for_a_key, p, workers)
            p.open(p.url + "/router")
            p.wait("document.querySelectorAll('#rows tr').length === 1")
            run(test_router_gone, p, router)
            run(test_no_problems, p)
    finally:
        for server in (router, *workers):
            server.process.kill()


main()
