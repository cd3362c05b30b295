#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Pages of other origins in headless Chromium: listed ones use the API with the headers of the JavaScript packages,
others reach nothing.  Exit 77: this machine has no Chromium."""
import http.server
import json
import os
import sys
import threading

from serve_lib import HERE, Server, run_all, same

sys.path.insert(0, os.path.join(HERE, "..", "page"))
from browser import Browser, find_chromium  # noqa: E402

# What the packages openai and @anthropic-ai/sdk send from a browser.
SDK = {
    "/v1/chat/completions": {
        "authorization": "Bearer k", "content-type": "application/json", "x-stainless-arch": "unknown",
        "x-stainless-lang": "js", "x-stainless-os": "Unknown", "x-stainless-package-version": "6.1.0",
        "x-stainless-retry-count": "0", "x-stainless-runtime": "browser:chrome", "x-stainless-runtime-version": "156.0.0",
        "x-stainless-timeout": "600", "openai-organization": "o", "openai-project": "p"},
    "/v1/messages": {
        "x-api-key": "k", "content-type": "application/json", "anthropic-version": "2023-06-01",
        "anthropic-dangerous-direct-browser-access": "true", "anthropic-beta": "b", "x-stainless-helper-method": "stream",
        "x-stainless-lang": "js", "x-stainless-retry-count": "0", "x-stainless-timeout": "600"},
}
BODY = json.dumps({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2, "temperature": 0})


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>a page</title>")

    def log_message(self, *_):
        pass


def other_site():
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    return site, f"http://127.0.0.1:{site.server_address[1]}"


def fetch(page, url, **options):
    """The status, or the error the page sees."""
    return page.eval(f"fetch({json.dumps(url)}, {json.dumps(options)}).then(async (r) => r.status + ' ' + "
                     "(r.headers.get('x-request-id') ? 'named ' : '') + (await r.text()).length, (e) => e.message)")


def test_a_listed_page_uses_the_packages(page):
    site, origin = other_site()
    with Server("--cors-origins", origin, "--api-key", "k") as s:
        page.open(origin + "/")
        for path, headers in SDK.items():
            got = fetch(page, f"http://127.0.0.1:{s.port}{path}", method="POST", headers=headers, body=BODY)
            assert got.startswith("200 "), (path, got)
        got = fetch(page, f"http://127.0.0.1:{s.port}/v1/models", headers={"authorization": "Bearer wrong"})
        assert got.startswith("401 "), got  # errors can be read
    site.shutdown()


def test_other_pages_reach_nothing(page):
    site, origin = other_site()
    with Server() as s:
        page.open(origin + "/")
        url = f"http://127.0.0.1:{s.port}/v1/chat/completions"
        assert "fetch" in fetch(page, url, method="POST", headers=SDK["/v1/chat/completions"], body=BODY)
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            fetch(page, url, method="POST", mode="no-cors", headers={"content-type": kind}, body=BODY)
        page.eval("new Promise((done) => { const i = new Image(); i.onerror = i.onload = () => done(1); "
                  f"i.src = 'http://127.0.0.1:{s.port}/flush_cache'; }})")
        same(s.metric("num_requests_total"), 0)
        assert s.metric("http_4xx_total") >= 3  # they came, and were turned away
        page.open(f"http://127.0.0.1:{s.port}/")  # the server's own page may
        got = fetch(page, url, method="POST", body=BODY)
        assert got.startswith("200 "), got
        same(s.metric("num_requests_total"), 1)
    site.shutdown()


if __name__ == "__main__":
    if not find_chromium():
        print("no Chromium")
        sys.exit(77)
    with Browser(find_chromium()) as browser:
        run_all(globals(), browser)
