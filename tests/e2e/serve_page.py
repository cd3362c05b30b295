#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The page against the real server with the model in this repository.  Exit 77: this machine has no Chromium."""
import json
import os
import sys

from serve_lib import HERE, Server, run_all, same

sys.path.insert(0, os.path.join(HERE, "..", "page"))
from browser import Browser, find_chromium  # noqa: E402
from driver import Page  # noqa: E402

MODEL = ["--model-path", os.path.join(HERE, "../../models/fathom-tiny"), "--quiet"]
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer", "maximum": 9, "minimum": 0}},
          "required": ["ok", "n"], "additionalProperties": False}


def said(p):
    return p.eval("(document.querySelector('.turn:last-of-type .error') || {}).innerText")


def test_an_answer_streams_and_is_counted(p):
    p.fill("max_tokens", "24")
    p.ask("Hello there")
    p.finished()
    assert not said(p), said(p)
    assert "token" in p.last(".after span"), p.last(".after span")
    assert "of 2,048 tokens" in p.eval("document.getElementById('gauge-text').textContent")


def test_an_overlong_message_is_no_dead_end(p):
    p.fill("prompt", "word " * 3000)
    p.eval("document.getElementById('send').click()")
    p.finished()
    assert "maximum context length" in said(p) and "Edit message" in said(p), said(p)
    p.ask("And now?")
    p.finished()
    assert not said(p), said(p)


def test_old_turns_make_room(p):
    p.new_chat()
    for i in range(7):
        p.fill("prompt", f"Message {i}: " + "word " * 600)
        p.eval("document.getElementById('send').click()")
        p.finished()
        assert not said(p), (i, said(p))
    assert "left out" in p.last(".after span"), p.last(".after span")


def test_a_schema_is_followed(p):
    p.new_chat()
    p.fill("max_tokens", "64")
    p.fill("schema", json.dumps(SCHEMA))
    p.ask("Give me a number.")
    p.finished()
    assert not said(p), said(p)
    answer = json.loads(p.eval("tree.path()[1].content"))
    same(sorted(answer), ["n", "ok"])
    p.fill("schema", "")


def test_the_dashboard_counts(p):
    p.eval("document.getElementById('tab-dash').click()")
    p.wait("Number(document.querySelector('#latency tbody td:nth-child(2)').textContent) >= 6")
    names = p.eval("[...document.querySelectorAll('.tile .name')].map((e) => e.textContent)")
    for name in ("KV cache", "Errors", "Aborted", "Connections"):
        assert name in names, names
    assert "evictable" in p.eval("document.getElementById('tiles').innerText")


def test_defaults_are_said(p):
    info = json.loads(p.server.get("/server_info"))
    same(info["default_sampling_params"], {"temperature": 1, "top_p": 1})


if __name__ == "__main__":
    if not find_chromium():
        print("skipped: no chromium (apt install chromium)")
        sys.exit(77)
    with Server(model=MODEL) as server, Browser(find_chromium()) as browser:
        page = Page(browser, f"http://127.0.0.1:{server.port}", os.environ.get("FM_SHOTS"))
        page.server = server
        page.open(page.url + "/")
        page.wait("document.getElementById('model').textContent !== ''")
        run_all(globals(), page)
        bad = [x for x in browser.problems if "status of 400" not in x]
        assert not bad, bad
