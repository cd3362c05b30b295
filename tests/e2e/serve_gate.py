#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Who may use fathom serve: keys are asked for before bodies, web pages of other origins stay out."""
import gzip
import json
import threading
import time

from serve_lib import Server, run_all, same

ASK = {"text": "Hello", "sampling_params": {"max_new_tokens": 2, "temperature": 0}}
KEY = {"Authorization": "Bearer k"}
MIB = 1 << 20


def head(path, *lines, length=31 * MIB):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: a", "Content-Type: application/json",
                        f"Content-Length: {length}", *lines, "", ""]).encode()


def read_reply(s):
    """Until the server closes; status and all of it."""
    text = b""
    while True:
        more = s.recv(65536)
        if not more:
            break
        text += more
    return int(text.split()[1]), text


def test_the_key_is_asked_for_before_the_body():
    with Server("--api-key", "k") as s:
        for path in ("/generate", "/v1/chat/completions", "/v1/messages", "/abort_request", "/nowhere"):
            c = s.raw()
            began = time.time()
            c.sendall(head(path))  # and not a byte of the body
            status, text = read_reply(c)
            same(status, 401, path)
            assert time.time() - began < 2 and b"WWW-Authenticate: Bearer" in text and b"Connection: close" in text, text
            assert path != "/v1/messages" or b'"type":"error"' in text, text
            c.close()


def test_nothing_of_a_keyless_upload_is_held():
    """Sixty-four uploads of 31 MiB without a key, while clients with a key are served."""
    with Server("--api-key", "k") as s:
        uploads = []
        for _ in range(64):
            c = s.raw()
            c.sendall(head("/generate"))
            uploads.append(c)
        piece = b" " * MIB
        got = []

        def push(c):
            try:
                for _ in range(31):
                    c.sendall(piece)
            except OSError:
                pass
            try:
                got.append(read_reply(c)[0])
            except ConnectionResetError:
                got.append(None)
        threads = [threading.Thread(target=push, args=(c,)) for c in uploads[:8]]
        for t in threads:
            t.start()
        body = json.dumps(dict(ASK, text="Hello " * 100000, sampling_params={"max_new_tokens": 1}))
        for _ in range(5):
            status = s.ask("POST", "/generate", ASK, KEY)[0]
            same(status, 200)
        same(s.ask("POST", "/generate", body, KEY)[0], 400)  # read to its end: too long for the context
        for t in threads:
            t.join()
        same(got, [401] * 8)  # who sends all of it before reading finds the answer all the same
        for c in uploads:
            c.close()


def test_expect_continue():
    with Server("--api-key", "k") as s:
        c = s.raw()
        c.sendall(head("/generate", "Expect: 100-continue"))
        status, text = read_reply(c)
        same((status, b"100 Continue" in text), (401, False))
        c.close()
        body = json.dumps(ASK).encode()
        c = s.raw()
        c.sendall(head("/generate", "Expect: 100-continue", "Authorization: Bearer k", "Connection: close", length=len(body)))
        assert c.recv(100).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        c.sendall(body)
        same(read_reply(c)[0], 200)
        c.close()
        c = s.raw()
        c.sendall(head("/nowhere", "Expect: 100-continue", "Authorization: Bearer k"))
        same(read_reply(c)[0], 404)
        c.close()


def test_a_refusal_without_a_body_keeps_the_connection():
    with Server("--api-key", "k") as s:
        c = s.connect()
        for headers, want in (({}, 401), (KEY, 200)) * 2:
            c.request("GET", "/v1/models", headers=headers)
            r = c.getresponse()
            r.read()
            same(r.status, want)
        c.close()


def test_compressed_bodies_are_refused():
    body = gzip.compress(json.dumps(ASK).encode())
    with Server() as s:
        for how in ("gzip", "deflate", "br", "zstd"):
            status, _, data = s.ask("POST", "/generate", body, {"Content-Encoding": how})
            same(status, 415)
            assert b"compressed" in data
        same(s.ask("POST", "/generate", ASK, {"Content-Encoding": "identity"})[0], 200)


def test_programs_need_no_content_type():
    """curl -d says it is a form; the packages of OpenAI and Anthropic say it is JSON."""
    with Server() as s:
        for kind in ("application/json", "application/json; charset=utf-8", "application/x-www-form-urlencoded", "text/plain"):
            same(s.ask("POST", "/generate", ASK, {"Content-Type": kind})[0], 200, kind)
        same(s.ask("POST", "/generate", ASK)[0], 200)


def test_pages_of_other_origins_stay_out():
    with Server() as s:
        own, plain = f"127.0.0.1:{s.port}", {"Content-Type": "text/plain"}
        ask = lambda **headers: s.ask("POST", "/generate", ASK, {k.replace("_", "-"): v for k, v in headers.items()})
        for origin in ("https://evil.example", "http://localhost:3000", "null", f"http://127.0.0.1:{s.port + 1}",
                       f"https://evil.example:{s.port}"):
            status, _, data = ask(Origin=origin, **plain)
            same(status, 403, origin)
            assert b"--cors-origins" in data, data
        same(ask(Origin=f"http://{own}")[0], 200)
        same(ask(Origin=f"https://{own}")[0], 200)  # by way of a proxy
        same(ask(Origin=f"http://localhost:{s.port}", Host=f"localhost:{s.port}")[0], 200)
        same(ask(Origin=f"http://evil.example:{s.port}", Host=f"evil.example:{s.port}")[0], 403)  # its DNS says 127.0.0.1
        for app in ("app://obsidian.md", "vscode-webview://abc", "file://"):
            same(ask(Origin=app)[0], 200, app)
        embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
        same(s.ask("GET", "/flush_cache", headers=embedded)[0], 403)
        same(s.ask("GET", "/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0], 200)
        same(s.ask("GET", "/flush_cache", headers={"Sec-Fetch-Site": "same-origin"})[0], 200)
        same(s.metric("num_requests_total"), 6)
    with Server("--cors-origins", "https://good.example") as s:
        same(s.ask("POST", "/generate", ASK, {"Origin": "https://good.example", "Sec-Fetch-Site": "cross-site"})[0], 200)
        same(s.ask("POST", "/generate", ASK, {"Origin": "https://evil.example"})[0], 403)
    with Server("--host", "0.0.0.0", "--port", "0") as s:  # a machine of a network may be called by its name
        same(s.ask("POST", "/generate", ASK, {"Origin": "http://box.lan:1", "Host": "box.lan:1"})[0], 200)


def test_time_to_first_token_leaves_out_the_upload():
    body = json.dumps(ASK).encode()
    with Server() as s:
        c = s.raw()
        c.sendall(head("/generate", "Connection: close", length=len(body)))
        time.sleep(1.2)
        c.sendall(body)
        same(read_reply(c)[0], 200)
        c.close()
        text = s.get("/metrics").decode()
        total = [line for line in text.splitlines() if line.startswith("fathom:time_to_first_token_seconds_sum")]
        assert float(total[0].split()[-1]) < 1, total


if __name__ == "__main__":
    run_all(globals())
