# SPDX-License-Identifier: Apache-2.0
"""What a first visit and a reload find: key, defaults, examples, the answer that was under way."""
import contextlib
import os
import subprocess
import sys

from driver import Page

MOCK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mock/server.py")


@contextlib.contextmanager
def mock(page_file, *options):
    server = subprocess.Popen([sys.executable, MOCK, "--page", page_file, "--itl", "0.012", *options],
                              stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}", server
    finally:
        server.terminate()
        server.wait()


def test_defaults_are_the_models(p):
    p.new_chat()
    p.eval("document.getElementById('reset').click()")
    p.wait("document.querySelector('output[for=temperature]').textContent === '0.60 (model\u2019s)'")
    p.ask("What was said earlier?")
    p.finished()
    body = p.asked()[-1]["body"]
    assert "temperature" not in body and "top_p" not in body, "the server knows its model's defaults"


def test_examples(p):
    p.new_chat()
    assert p.count("#examples button") == 4
    p.shot("chat-empty")
    p.click("#examples button")
    p.finished()
    assert p.asked()[-1]["body"]["messages"][-1]["content"].startswith("Explain how")


def test_reload_during_an_answer(p):
    p.new_chat()
    p.ask("a slow one")
    p.wait("[...document.querySelectorAll('.turn.answer .text')].pop().innerText.includes('w9')")
    p.open(p.url + "/?reloaded")
    p.wait("document.querySelectorAll('.turn.answer').length === 1")
    assert "w0 w1" in p.answer(), p.answer()
    assert "interrupted" in p.last(".after span")
    p.press("Delete", ".turn.user")


def test_key_counts_at_once(p, page_file):
    with mock(page_file, "--api-key", "sesame", "--prefix", "house") as (url, _):
        q = Page(p.browser, url, p.shots)
        q.open(url + "/")
        q.wait("document.getElementById('link-text').textContent === 'API key needed'")
        q.ask("Hello there")
        q.finished()
        assert "Enter the API key under Settings" in q.last(".turn .error")
        q.fill("key", "sesame")
        q.wait("document.getElementById('model').textContent === 'mock-tiny'")
        q.wait("document.getElementById('link-text').textContent === 'connected'")
        q.press("Try again", ".error")
        q.finished()
        assert q.count(".turn .error") == 0 and "Depth is measured" in q.answer()
        q.eval("document.getElementById('tab-dash').click()")
        q.wait("document.querySelector('#latency tbody td:nth-child(2)').textContent === '1'")  # prefix house:
        q.eval("document.getElementById('tab-chat').click()")
        q.new_chat()
    p.problems[:] = [x for x in p.problems if url not in x and "status of 401" not in x]
    p.requests[:] = [u for u in p.requests if not u.startswith(url)]
    p.open(p.url + "/")


TESTS = (test_defaults_are_the_models, test_examples, test_reload_during_an_answer)
