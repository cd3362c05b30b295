#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: it types, streams, stops, and reads the dashboard.

    test_page.py --page page.html [--shots DIR]   against the mock server
    test_page.py --url http://127.0.0.1:30000     what holds for any model

Exit 77: this machine has no Chromium.
"""
import argparse
import json
import sys
import time

import check_chats
import check_dashboard
import check_markup
import check_start
import check_tools
import check_turns
from browser import Browser, find_chromium
from driver import Page

SHIFT = 8


def test_starts(p):
    p.open(p.url + "/")
    p.wait("document.getElementById('model').textContent !== ''")
    p.wait("document.getElementById('link').dataset.state === 'up'")
    assert p.eval("document.activeElement.id") == "prompt", "the prompt has the focus"
    assert p.eval("document.querySelectorAll('label').length") >= 8


def test_streams(p):
    p.ask("Hello there")
    p.wait("document.querySelector('.turn.busy')")
    assert p.eval("document.getElementById('send').hidden") and not p.eval("document.getElementById('stop').hidden")
    assert p.eval("document.getElementById('log').getAttribute('aria-busy')") == "true"
    p.finished()
    text = p.answer()
    assert "Depth is measured in fathoms" in text, text
    assert "<b>This is not bold</b>, and 3 * 4 * 5 = 60." in text, text
    q = ".turn.answer .text "
    for selector, n in (("strong", 1), ("ol > li", 2), ("ol ul > li", 2), ("table td", 4), ("pre code", 1), ("b", 0)):
        assert p.eval(f"document.querySelectorAll('{q}{selector}').length") == n, selector
    assert "a < b && \"quoted\"" in p.eval(f"document.querySelector('{q}pre').innerText")
    note = p.eval("document.querySelector('.after span').textContent")
    assert "tok/s" in note and "first after" in note and "cached" in note, note


def test_thinking_is_folded(p):
    assert p.eval("document.querySelector('.think').open") is False
    assert p.eval("document.querySelector('.think summary').textContent").startswith("Thought for ")
    p.click(".think summary")
    assert "greets" in p.eval("document.querySelector('.thought').innerText")
    p.shot("chat-desktop")
    p.click(".think summary")


def test_is_multi_turn(p):
    p.ask("What was said earlier?")
    p.finished()
    assert p.answer().startswith("user: Hello there / assistant: Hello. Depth is / user: What was said"), p.answer()
    body = p.asked()[-1]["body"]
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
    assert "greets" not in json.dumps(body), "thoughts are not sent back"


def test_stops(p):
    p.ask("a slow one")
    p.wait("[...document.querySelectorAll('.turn.answer .text')].pop().innerText.includes('w20')")
    p.shot("chat-streaming")
    p.click("#stop")
    p.finished()
    n = len(p.answer().split())
    assert 20 <= n < 400, n
    time.sleep(0.3)
    assert len(p.answer().split()) == n, "nothing arrives after the stop"
    assert "stopped" in p.eval("[...document.querySelectorAll('.after span')].pop().textContent")
    for _ in range(50):  # the server sees the connection close at its next write
        if p.asked()[-1]["end"] == "disconnected":
            break
        time.sleep(0.1)
    assert p.asked()[-1]["end"] == "disconnected"


def test_escape_stops_too(p):
    p.ask("slow again")
    p.wait("[...document.querySelectorAll('.turn.answer .text')].pop().innerText.includes('w3')")
    p.key("Escape")
    p.finished()
    assert len(p.answer().split()) < 400


def test_shows_errors(p):
    p.ask("please refuse")
    p.finished()
    said = p.eval("[...document.querySelectorAll('.turn .error')].pop().innerText")
    assert "nothing here may be refused" in said and "Try again" in said, said
    p.ask("now break")
    p.finished()
    assert "ran out of patience" in p.eval("[...document.querySelectorAll('.turn .error')].pop().innerText")
    assert p.answer().startswith("w0 w1"), "what came before the error stays"


def test_settings_are_sent(p):
    p.eval("""(() => { const set = (id, v) => { const e = document.getElementById(id); e.value = v;
        e.dispatchEvent(new Event('input', {bubbles: true})); };
        set('temperature', '1.25'); set('top_p', '0.5'); set('max_tokens', '77'); set('seed', '7');
        set('system', 'Be brief.'); set('thinking', 'off'); set('key', 'sesame'); })()""")
    p.ask("What was said earlier?")
    p.finished()
    entry = p.asked()[-1]
    body = entry["body"]
    assert (body["temperature"], body["top_p"], body["max_completion_tokens"], body["seed"]) == (1.25, 0.5, 77, 7), body
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert body["chat_template_kwargs"] == {"thinking": False} and entry["key"] == "Bearer sesame"
    p.shot("settings-desktop")


def test_reload_keeps_the_chat(p):
    n = p.eval("document.querySelectorAll('.turn').length")
    p.open(p.url + "/?again")
    p.wait("document.readyState === 'complete'")
    assert p.eval("document.querySelectorAll('.turn').length") == n
    assert p.eval("document.getElementById('seed').value") == "7"
    p.eval("document.getElementById('reset').click()")
    assert p.eval("document.getElementById('temperature').value") == "0.6"


def test_new_chat(p):
    p.eval("document.getElementById('clear').click()")
    assert p.eval("document.querySelectorAll('.turn').length") == 0
    p.eval("document.getElementById('prompt').focus()")
    p.type("one")
    p.key("Enter", SHIFT)
    p.type("two")
    assert p.eval("document.getElementById('prompt').value") == "one\ntwo", "Shift+Enter breaks the line"
    p.eval("document.getElementById('prompt').value = ''")


def test_theme(p):
    seen = set()
    for _ in range(3):
        p.click("#theme")
        seen.add(p.eval("document.documentElement.dataset.theme + getComputedStyle(document.body).backgroundColor"))
    assert len(seen) == 2, seen


TRAFFIC = """
(async () => {
  const ask = () => fetch("v1/chat/completions", { method: "POST", body: JSON.stringify({
    stream: true, ignore_eos: true, max_tokens: 60 + Math.random() * 200,
    messages: [{ role: "user", content: "x ".repeat(50) }] }) }).then((r) => r.text());
  for (let i = 0; i < ROUNDS; i++) {
    for (let j = 0; j < 1 + i % 5; j++) ask();
    await new Promise((r) => setTimeout(r, 500));
  }
})(), 0"""


def test_dashboard(p, rounds):
    p.eval(TRAFFIC.replace("ROUNDS", str(rounds)))
    p.eval("document.getElementById('tab-chat').focus()")
    p.key("ArrowRight")
    assert p.eval("document.activeElement.id") == "tab-dash"
    assert not p.eval("document.getElementById('view-dash').hidden")
    time.sleep(rounds * 0.5)
    p.wait("Number(document.querySelector('.tile .value').firstChild.data) > 0")
    assert p.eval("document.querySelectorAll('.plot svg path[d^=M]').length") >= 6, "lines are drawn"
    assert p.eval("document.querySelectorAll('#latency tbody tr').length") == 3
    assert "p99" in p.eval("document.querySelectorAll('.plot svg')[3].getAttribute('aria-label')")
    assert "0.0-mock" in p.eval("document.getElementById('facts').innerText")
    p.shot("dashboard-desktop")


def test_quantiles(p):
    h = "{le: [1, 2, 4, Infinity], count: [0, 10, 20, 20], n: 20, sum: 50}"
    for q, want in ((0.5, 2), (0.75, 3), (0.25, 1.5)):
        assert p.eval(f"quantile({q}, {h})") == want, q
    assert p.eval("Number.isNaN(quantile(0.5, {le: [1, Infinity], count: [0, 0], n: 0, sum: 0}))")
    assert p.eval("quantile(0.99, {le: [1, Infinity], count: [1, 10], n: 10, sum: 9})") == 1, "beyond the last bound"
    text = ('fathom:x_bucket{a="b,le=c",le="1"} 2\n' 'fathom:x_bucket{le="+Inf"} 3\n' "fathom:x_sum 4.5\n"
            "fathom:x_count 3\n" 'sglang:y{r="0"} 1\n' 'sglang:y{r="1"} 2\n')
    got = p.eval(f"JSON.stringify(parseMetrics({json.dumps(text)}))")
    assert json.loads(got)["histograms"]["x"]["count"] == [2, 3] and json.loads(got)["plain"]["y"] == 3, got


def test_phone(p):
    p.size(390, 844, phone=True)
    time.sleep(0.3)
    wide = "document.documentElement.scrollWidth <= innerWidth"
    assert p.eval(wide), "the dashboard fits a phone"
    p.shot("dashboard-phone")
    p.eval("document.getElementById('tab-chat').click()")
    p.ask("Hello there")
    p.finished()
    assert p.eval(wide), "the chat fits a phone"
    p.shot("chat-phone")
    p.click("#panel-toggle")
    assert p.eval("document.activeElement.id") == "system" and p.eval(wide)
    p.shot("settings-phone")
    p.click("#panel-close")
    assert p.eval("document.getElementById('panel').hidden && document.activeElement.id") == "prompt"


def test_dark(p):
    p.eval("document.documentElement.dataset.theme = 'dark'")
    p.size(1280, 860)
    p.shot("chat-dark")
    p.eval("document.getElementById('tab-dash').click()")
    time.sleep(0.3)
    p.shot("dashboard-dark")


def test_no_outside_requests(p):
    outside = [u for u in p.requests if not u.startswith((p.url, "data:", "about:"))]
    assert not outside, outside
    unexpected = [x for x in p.problems if "status of 400" not in x]  # refused requests, logged by the browser
    assert not unexpected, unexpected


def test_server_gone(p, server):
    server.terminate()
    server.wait()
    p.wait("document.getElementById('link').dataset.state === 'down'")
    p.eval("document.getElementById('tab-chat').click()")
    p.ask("anyone there?")
    p.finished()
    assert "cannot be reached" in p.eval("[...document.querySelectorAll('.turn .error')].pop().innerText")


def test_any_model(p):
    """Against a real server: whatever it says, it streams, counts and stops."""
    p.eval("""(() => { const e = document.getElementById('max_tokens'); e.value = '24';
        e.dispatchEvent(new Event('input')); })()""")
    p.ask("Hello there")
    p.finished()
    failed = p.eval("(document.querySelector('.turn .error') || {}).innerText")
    assert not failed, failed
    note = p.eval("document.querySelector('.after span').textContent")
    assert "token" in note, note
    p.shot("real-chat")
    p.eval("document.getElementById('tab-dash').click()")
    time.sleep(4.5)
    assert p.eval("Number(document.querySelector('#latency tbody td:nth-child(2)').textContent) >= 1")
    p.shot("real-dashboard")


def run(tests):
    for test, *more in tests:
        test(*more)
        print("ok", test.__name__[5:].replace("_", " "), flush=True)


def with_mock(args, chromium):
    with check_start.mock(args.page) as (url, server):
        with Browser(chromium) as browser:
            p = Page(browser, url, args.shots)
            run([(t, p) for t in (test_starts, test_streams, test_thinking_is_folded, test_is_multi_turn, test_stops,
                                  test_escape_stops_too, test_shows_errors, test_settings_are_sent,
                                  test_reload_keeps_the_chat, test_new_chat, test_theme, test_quantiles)])
            for module in (check_markup, check_turns, check_start, check_tools, check_chats, check_dashboard):
                run([(t, p) for t in module.TESTS])
            run([(check_start.test_key_counts_at_once, p, args.page)])
            run([(test_dashboard, p, args.rounds), (test_phone, p), (test_dark, p), (test_no_outside_requests, p),
                 (test_server_gone, p, server)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--page")
    parser.add_argument("--url")
    parser.add_argument("--shots")
    parser.add_argument("--rounds", type=int, default=12, help="half seconds of traffic for the dashboard")
    args = parser.parse_args()
    chromium = find_chromium()
    if not chromium:
        print("skipped: no chromium (apt install chromium)")
        sys.exit(77)
    if args.url:
        with Browser(chromium) as browser:
            p = Page(browser, args.url, args.shots)
            run([(test_starts, p), (test_any_model, p)])
    else:
        with_mock(args, chromium)


main()
