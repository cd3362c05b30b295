#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A report page in a real browser: plots are drawn, nothing is fetched, it fits a phone, it has a dark side.

    test_report.py PAGE.html [--shots DIR]

Exit 77: this machine has no Chromium, or there is no report.
"""
import argparse
import os
import sys

from browser import Browser, find_chromium


def luminance(p):
    return p.eval("(() => { const c = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number);"
                  " return c[0] + c[1] + c[2]; })()")


def check_plots(p):
    assert p.eval("document.querySelectorAll('svg').length") >= 4, "history, importance, a plot per parameter"
    assert p.eval("document.querySelectorAll('path.best').length") == 1
    n_rows = p.eval("document.querySelectorAll('tbody tr').length")
    assert p.eval("document.querySelectorAll('svg')[0].querySelectorAll('circle').length") == n_rows
    inside = """[...document.querySelectorAll('svg')].every((s) => { const b = s.viewBox.baseVal;
        return [...s.querySelectorAll('circle')].every((c) => c.cx.baseVal.value > 0 && c.cx.baseVal.value < b.width
            && c.cy.baseVal.value > 0 && c.cy.baseVal.value < b.height); })"""
    assert p.eval(inside), "a dot lies outside of its plot"
    assert not p.eval("/NaN|inf/i.test([...document.querySelectorAll('svg')].map((s) => s.outerHTML).join(' ')"
                      ".replace(/<title>.*?<.title>/g, ''))")


def check_ablation(p):
    assert p.eval("document.querySelectorAll('tbody tr').length") >= 4
    assert p.eval("document.querySelectorAll('tbody tr td.hash').length") >= 4


def check_frame(p, shots, name):
    p.size(1280, 860)
    light = luminance(p)
    p.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert luminance(p) < light, "no dark side"
    p.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    if shots:
        os.makedirs(shots, exist_ok=True)
        p.screenshot(os.path.join(shots, name + ".png"))
    p.size(390, 844, phone=True)
    assert p.eval("document.documentElement.scrollWidth <= innerWidth"), "wider than a phone"
    if shots:
        p.screenshot(os.path.join(shots, name + "-phone.png"))
    outside = [u for u in p.requests if not u.startswith(("file:", "data:", "about:"))]
    assert not outside, outside
    assert not p.problems, p.problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--shots")
    args = parser.parse_args()
    if not find_chromium() or not os.path.exists(args.page):
        print("skipped: no chromium (apt install chromium), or no report")
        sys.exit(77)
    with Browser(find_chromium()) as p:
        p.open("file://" + os.path.abspath(args.page))
        name = os.path.splitext(os.path.basename(args.page))[0]
        (check_ablation if name.startswith("ablat") else check_plots)(p)
        check_frame(p, args.shots, name)
    print("ok", name)


main()
