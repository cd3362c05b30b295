# SPDX-License-Identifier: Apache-2.0
"""The page as its user sees it: asks, waits, reads."""
import json
import os
import urllib.request


class Page:
    def __init__(self, browser, url, shots):
        self.browser, self.url, self.shots = browser, url, shots

    def __getattr__(self, name):
        return getattr(self.browser, name)

    def ask(self, text):
        self.eval("document.getElementById('prompt').focus()")
        self.type(text)
        self.key("Enter")

    def finished(self):
        self.wait("!document.querySelector('.turn.busy') && !document.getElementById('send').hidden", 60)

    def answer(self):
        return self.eval("[...document.querySelectorAll('.turn.answer .text')].pop().innerText")

    def shot(self, name):
        if self.shots:
            os.makedirs(self.shots, exist_ok=True)
            self.screenshot(os.path.join(self.shots, name + ".png"))

    def asked(self):
        with urllib.request.urlopen(self.url + "/mock/log") as r:
            return json.load(r)

    def last(self, selector, what="innerText"):
        return self.eval(f"[...document.querySelectorAll({json.dumps(selector)})].pop().{what}")

    def count(self, selector):
        return self.eval(f"document.querySelectorAll({json.dumps(selector)}).length")

    def press(self, name, within=".turn:last-of-type"):
        """Clicks the last button of that name."""
        self.eval(f"[...document.querySelectorAll({json.dumps(within + ' button')})]"
                  f".filter((b) => b.textContent === {json.dumps(name)} || b.ariaLabel === {json.dumps(name)})"
                  ".pop().click()")

    def fill(self, id, text):
        self.eval(f"(() => {{ const e = document.getElementById({json.dumps(id)}); e.value = {json.dumps(text)};"
                  " e.dispatchEvent(new Event('input', {bubbles: true})); })()")

    def new_chat(self):
        self.eval("document.getElementById('clear').click()")
