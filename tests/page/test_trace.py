#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `fathom trace --html` in headless Chromium, of a job of 2000 requests: its size, how long it takes to open,
what it shows, and that its timeline zooms.  Exit 77: this machine has no Chromium.

    test_trace.py FATHOM TRACE_SAMPLE [SHOTS]"""
import os
import subprocess
import sys
import tempfile
import time

from browser import Browser, find_chromium

MAX_BYTES, MAX_SECONDS = 10e6, 3.0


def write_page(fathom, sample, folder, ranks, steps, tasks):
    trace, page = os.path.join(folder, f"trace{ranks}"), os.path.join(folder, f"page{ranks}.html")
    subprocess.run([sample, trace, str(ranks), str(steps), str(tasks)], check=True)
    text = subprocess.run([fathom, "trace", trace, "--html", page], check=True, capture_output=True, text=True).stdout
    assert os.path.getsize(page) < MAX_BYTES, f"{page} has {os.path.getsize(page)} bytes"
    return page, text


def opened(browser, page):
    began = time.monotonic()
    browser.open("file://" + page)
    browser.wait("document.documentElement.dataset.ready")
    return time.monotonic() - began, float(browser.eval("document.documentElement.dataset.ready")) / 1000


def colours(browser, canvas):
    """How many pixels of a canvas are painted."""
    return browser.eval(f"(() => {{ const c = document.getElementById('{canvas}'), "
                        "d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;"
                        "for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })()")


def wheel(browser, by):
    box = browser.eval("(() => { const e = document.getElementById('timeline'); e.scrollIntoView();"
                       "const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + 30]; })()")
    browser.call("Input.dispatchMouseEvent", type="mouseWheel", x=box[0], y=box[1], deltaX=0, deltaY=by)


def check(browser, page, text, ranks, tasks, shots):
    wall, ready = opened(browser, page)
    print(f"{ranks} ranks: {os.path.getsize(page) / 1e6:.1f} MB, drawn {ready:.2f} s after it began to load ({wall:.2f} s)")
    assert ready < MAX_SECONDS, f"{ready} s to open"
    first = browser.eval("document.querySelector('#verdict li').textContent")
    assert first in text, first
    assert browser.eval("document.querySelectorAll('.rank').length") == ranks
    assert browser.eval("document.querySelectorAll('#roof circle').length") >= 2
    assert browser.eval("document.getElementById('tasks-title').textContent") == f"{tasks} requests"
    assert colours(browser, "timeline") > 1000 and colours(browser, "tasks") > 1000
    before = browser.eval("timeline.view[1] - timeline.view[0]")
    for _ in range(5):
        wheel(browser, -100)
    browser.wait(f"timeline.view[1] - timeline.view[0] < 0.5 * {before}")
    browser.eval("timeline.show([timeline.all[0], timeline.all[0] + 20000])")
    assert colours(browser, "timeline") > 1000
    assert "rank 0: " in browser.eval("timeline.describe(400, timeline.rowOf(0, 2) + 4)")
    if shots:
        os.makedirs(shots, exist_ok=True)
        browser.eval("window.scrollTo(0, 0)")
        browser.screenshot(os.path.join(shots, f"trace-{ranks}.png"))
    assert not browser.problems, browser.problems
    assert [r for r in browser.requests if not r.startswith("file:")] == [], browser.requests


def main():
    chromium = find_chromium()
    if not chromium:
        print("no Chromium here")
        return 77
    fathom, sample, shots = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory() as folder:
        for ranks, steps, tasks in ((1, 80000, 2000), (4, 20000, 2000)):
            page, text = write_page(fathom, sample, folder, ranks, steps, tasks)
            with Browser(chromium) as browser:
                check(browser, page, text, ranks, tasks, shots)
    return 0


if __name__ == "__main__":
    sys.exit(main())
