#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The router itself: its table of workers, limits, health, retries, keys, logs, its end."""
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

from route_lib import FAST, Router, Worker
from serve_lib import FATHOM, run_all, same

ASK = {"text": "Hello", "sampling_params": {"max_new_tokens": 4, "temperature": 0}}
LONG = {"text": "Hello", "stream": True, "sampling_params": {"max_new_tokens": 3000, "temperature": 0, "ignore_eos": True}}


class Fake(http.server.ThreadingHTTPServer):
    """A stand-in worker whose replies the test sets."""
    daemon_threads = True

    def __init__(self):
        self.replies, self.seen, self.n_step, self.load = {}, [], 7, 0

        def feed(handler):
            time.sleep(0.1)
            body = b"fathom-cache 1 epoch=1 version=1 page_size=16 pages=9 all=1 prefill_rate=1e7 row_seconds=1e-4 load=%d\n" % self.load
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        self.feed = feed

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.do_POST()

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.server.seen.append((self.path, dict(self.headers), body))
                reply = self.server.replies.get(self.path.split("?epoch")[0], (200, b"{}"))
                if callable(reply):
                    reply(self)
                    return
                self.send_response(reply[0])
                self.send_header("Content-Length", str(len(reply[1])))
                self.send_header("X-Own", "kept")
                self.end_headers()
                self.wfile.write(reply[1])

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """The router closes what it does not need any more."""

    def asked(self, path):
        return [s for s in self.seen if s[0] == path]


def add(router, url, want=200, **more):
    return router.post("/workers", {"url": url, **more}, want)


def test_table(workers):
    with Router([]) as r:
        assert any("there are no workers yet" in line for line in r.log), r.log
        same(r.ask("GET", "/health")[0], 503)
        same(r.ask("POST", "/generate", ASK)[0], 503)
        first = add(r, workers[0].url())
        same(first["health"], "new")
        add(r, workers[0].url() + "/", 400)
        add(r, "ftp://x", 400)
        r.post("/workers", [1], 400)
        r.post("/workers", {}, 400)
        r.wait_up(1)
        want = r.post("/generate", ASK)["text"]
        second = add(r, workers[1].url())
        r.wait_up(2)
        same(r.ask("DELETE", f"/workers/{first['id']}")[0], 200)
        same([w["url"] for w in r.table()], [workers[1].url()])
        same(r.post("/generate", ASK)["text"], want)
        same(r.ask("POST", f"/workers/{second['id']}/drain")[0], 200)
        same(r.ask("GET", "/health")[0], 503)
        same(r.ask("POST", f"/workers/{workers[1].url().replace('/', '%2F')}/undrain")[0], 200)
        same(r.post("/generate", ASK)["text"], want)
        for other in (77, second["id"] + 2**32, second["id"] + 2**64, -second["id"], f"+{second['id']}", f"{second['id']}x"):
            for method in ("GET", "DELETE"):
                same(r.ask(method, f"/workers/{other}")[0], 404, other)
        same([w["id"] for w in r.table()], [second["id"]])
        same(r.ask("PUT", "/workers")[0], 405)


def test_file_is_read_again(workers):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
        f.write(f"# workers\n{workers[0].url()}\n\n")
        f.flush()
        with Router([], "--worker-file", f.name) as r:
            r.wait_up(1)
            f.seek(0)
            f.write(f"{workers[1].url()}/ key # its own\n{'':60}\n")
            f.flush()
            r.process.send_signal(signal.SIGHUP)
            end = time.time() + 10
            while [w["url"] for w in r.table()] != [workers[1].url()] and time.time() < end:
                time.sleep(0.05)
            same([w["url"] for w in r.table()], [workers[1].url()])
            r.wait_up(1)
            r.process.send_signal(signal.SIGHUP)  # the same once more changes nothing
            r.post("/generate", ASK)
            same([w["url"] for w in r.table()], [workers[1].url()])


def test_listed_keys_change(workers):
    with Fake() as fake, tempfile.NamedTemporaryFile("w") as f:
        def list_with(key):
            f.seek(0)
            f.truncate()
            f.write(f"{fake.url()} {key} # its own\n")
            f.flush()
        list_with("old#1")
        with Router([], "--worker-file", f.name, "--worker-api-key", "usual") as r:
            r.wait_up(1)
            r.ask("GET", "/v1/models")
            list_with("new")
            r.process.send_signal(signal.SIGHUP)
            end = time.time() + 10
            while fake.asked("/v1/models")[-1][1]["Authorization"] != "Bearer new" and time.time() < end:
                r.ask("GET", "/v1/models")
            same([fake.asked("/v1/models")[i][1]["Authorization"] for i in (0, -1)], ["Bearer old#1", "Bearer new"])


def test_state_outlives_the_router(workers):
    """Who joined by request and who drains is known after a restart; also after kill -9."""
    with tempfile.TemporaryDirectory() as d, Fake() as fake:
        args = ("--state-file", os.path.join(d, "state"), "--worker", workers[0].url())
        r = Router([], *args)
        add(r, workers[1].url())
        add(r, fake.url(), api_key="own")
        add(r, "http://127.0.0.1:1")
        same(r.ask("DELETE", "/workers/4")[0], 200)
        for drained in (workers[0].url(), fake.url()):
            same(r.ask("POST", f"/workers/{drained.replace('/', '%2F')}/drain")[0], 200)
        same(r.ask("POST", f"/workers/{workers[0].url().replace('/', '%2F')}/undrain")[0], 200)
        add(r, "http://a:1", 400, api_key="two words")
        r.process.kill()
        r.process.communicate()
        same(os.stat(args[1]).st_mode & 0o777, 0o600)
        with Router([], *args) as r:
            r.wait_up(2)
            same({w["url"]: w["draining"] for w in r.table()},
                 {workers[0].url(): False, workers[1].url(): False, fake.url(): True})
            r.ask("POST", f"/workers/{fake.url().replace('/', '%2F')}/undrain")
            r.wait_up(3)
        assert "Bearer own" in {s[1].get("Authorization") for s in fake.seen}
        with open(args[1], "w", encoding="ascii") as f:
            f.write("leave http://a:1\n")
        got = subprocess.run([FATHOM, "route", *args], capture_output=True, text=True, check=False)
        same((got.returncode, "leave" in got.stderr), (2, True))


def test_wrong_files_are_refused(workers):
    """In one sentence that says where."""
    def refusal(*args):
        got = subprocess.run([FATHOM, "route", "--port", "0", *args], capture_output=True, text=True, check=False, timeout=20)
        assert got.returncode, got.stderr
        return got.stderr.splitlines()[-1]
    with tempfile.TemporaryDirectory() as d:
        listed, state = os.path.join(d, "workers"), os.path.join(d, "state")
        for line in ("ftp://a:1", "http://b:1 key more"):
            with open(listed, "w", encoding="ascii") as f:
                f.write(f"# workers\nhttp://a:1\n\n{line}\n")
            assert f"{listed}, line 4: " in refusal("--worker-file", listed), line
        with open(state, "w", encoding="ascii") as f:
            f.write("join http://a:1\nleave http://a:1\n")
        assert f"{state}, line 2: " in refusal("--state-file", state)
        for path in (os.path.join(d, "none", "state"), d):
            assert f"--state-file {path} " in refusal("--state-file", path)
        with Router([], "--state-file", os.path.join(d, "new")):
            same(sorted(os.listdir(d)), ["state", "workers"])


def test_wrong_options_are_refused(workers):
    """What could have no effect is an error that names it."""
    for args, word in (
            (("--worker", "http://a:0"), "http://a:0"), (("--worker", "http://:1"), "http://:1"),
            (("--worker", "http://user:word@a:1"), "user"), (("--worker", "http://a:1/x?y=1"), "query"),
            (("--worker", "http://a:1#x"), "fragment"), (("--worker-urls", "http://a:1", "b:2"), '"b:2"'),
            (("--worker-api-key", "two words"), "--worker-api-key"), (("--api-key", ""), "--api-key"),
            (("--reasoning-parser", "x"), "--reasoning-parser x"), (("--tool-call-parser", "x"), "--tool-call-parser x"),
            (("--tokenizer-path", "/"), "/: there is no tokenizer"), (("--health-check-endpoint", "health"), "health does not"),
            (("--policy", "best"), "--policy best"), (("--ssl-keyfile", "x"), "--ssl-certfile")):
        got = subprocess.run([FATHOM, "route", "--port", "0", *args], capture_output=True, text=True, check=False, timeout=20)
        said = [line for line in got.stderr.splitlines() if not line.endswith(" joins")]
        same((got.returncode, len(said), said[0].startswith("fathom route: "), word in said[0]), (2, 1, True, True), (args, said))


def test_unknown_names_are_waited_for(workers):
    """A host that has no address now may have one later; it holds up neither the start nor the others."""
    with Router([], "--worker", "http://no-such-host.invalid:30000", "--worker", workers[0].url()) as r:
        r.wait_up(1)
        r.post("/generate", ASK)
        end = time.time() + 30
        while r.table()[0]["health"] != "down" and time.time() < end:
            time.sleep(0.1)
        same((r.table()[0]["health"], bool(r.table()[0]["why"])), ("down", True))
        same([w["why"] for w in r.table()][1], "")


def test_flags_of_sglangs_router(workers):
    with Router(workers, "--max-concurrent-requests", "-1", "--cache-threshold", "0.5", "--cors-allowed-origins",
                "http://a.example", "http://b.example", "--dp-aware") as r:
        for origin in ("a", "b", "c"):
            status, headers, _ = r.ask("OPTIONS", "/generate", headers={
                "Origin": f"http://{origin}.example", "Access-Control-Request-Method": "POST"})
            same(headers.get("Access-Control-Allow-Origin") is not None, origin != "c", (origin, status))
    got = subprocess.run([FATHOM, "route", "--pd-disaggregation"], capture_output=True, text=True, check=False)
    same((got.returncode, "prefill and decode share one engine" in got.stderr), (2, True))


def test_every_endpoint(workers):
    with Router(workers) as r:
        for path in ("/v1/models", "/server_info", "/model_info", "/version", "/openapi.json", "/v1/loads", "/api/tags",
                     "/health_generate", "/health", "/readiness", "/liveness", "/", "/router"):
            same(r.ask("GET", path)[0], 200, path)
        same(r.post("/tokenize", {"prompt": "Hello"})["count"] > 0, True)
        same(r.ask("GET", "/nowhere")[0], 404)
        same(r.ask("GET", "/generate")[0], 405)
        same(r.ask("POST", "/flush_cache")[0], 200)
        same(r.post("/abort_request", {"rid": "x"}), {"success": True})
        c = r.connect()
        c.request("HEAD", "/v1/models")
        reply = c.getresponse()
        same((reply.status, reply.read()), (200, b""))
        c.close()


def test_responses_stay(workers):
    """A response is kept by the worker that gave it; what refers to it goes there."""
    with Router(workers, "--policy", "round_robin") as r:
        for _ in range(3):
            one = r.post("/v1/responses", {"input": "Hello", "max_output_tokens": 4})
            same(r.ask("GET", f"/v1/responses/{one['id']}")[0], 200)
            r.post("/v1/responses", {"input": "More", "max_output_tokens": 4, "previous_response_id": one["id"]})
            same(r.ask("DELETE", f"/v1/responses/{one['id']}")[0], 200)


def test_responses_of_another_router(workers):
    """An id that this router did not give is found at the worker that keeps it."""
    plain = ("--policy", "round_robin")
    with Router(workers, *plain) as first, Router(workers, *plain) as second:
        for _ in range(2):  # one at each worker
            one = first.post("/v1/responses", {"input": "Hello", "max_output_tokens": 4})
            for _ in range(3):
                same(second.ask("GET", f"/v1/responses/{one['id']}")[0], 200)
            more = {"input": "More", "max_output_tokens": 4, "previous_response_id": one["id"]}
            with Router(workers, *plain) as third:
                two = third.post("/v1/responses", more)
                same(third.ask("POST", f"/v1/responses/{one['id']}/cancel")[0], 400)  # it has ended
            with Router(workers, *plain) as third:
                same(third.ask("DELETE", f"/v1/responses/{two['id']}")[0], 200)
            same(second.ask("GET", f"/v1/responses/{two['id']}")[0], 404)
        same(second.ask("GET", "/v1/responses/none%20such")[0], 404)
        same(second.ask("POST", "/v1/responses", {"input": "x", "previous_response_id": "none"})[0] in (400, 404), True)
        both = [w["requests"] for w in second.table()]
        assert min(both) >= 2, both


def test_profiles_of_all_workers(workers):
    with tempfile.TemporaryDirectory() as d, Worker("--profile-dir", d) as a, Worker("--profile-dir", d) as b, Router([a, b]) as r:
        text = r.ask("POST", "/start_profile")
        same(text[0], 200)
        lines = dict(line.split(": ", 1) for line in text[2].decode().splitlines())
        same(set(lines), {a.url(), b.url()})
        files = [line.split()[-1] for line in lines.values()]
        same(len(set(files)), 2)
        r.post("/generate", ASK)
        status, _, text = r.ask("POST", "/start_profile")
        same((status, "already" in text.decode()), (400, True))
        same(a.ask("POST", "/stop_profile")[0], 200)
        status, _, text = r.ask("POST", "/stop_profile")  # one worker has no profile: its refusal is reported, the other's profile ends
        message = json.loads(text)["error"]["message"]
        same((status, [x in message for x in (a.url() + ": no trace", b.url() + ": Stop")]), (400, [True, True]))
        for f in files:
            assert os.path.getsize(f) > 0, f


def test_flush_reaches_all(workers):
    with Fake() as odd, Router(workers) as r:
        same(r.ask("POST", "/flush_cache")[::2], (200, b"Cache flushed."))
        odd.replies["/flush_cache"] = (503, b"busy")
        add(r, odd.url())
        r.wait_up(3)
        status, _, text = r.ask("POST", "/flush_cache")
        same((status, f"{odd.url()}: busy" in json.loads(text)["error"]["message"]), (503, True))


def test_owner_of_a_response_is_lost(workers):
    """No other worker has it: the client gets the error at once, not when the queue's time is over."""
    own = Worker()
    with Router([own], "--queue-timeout-secs", "50") as r:
        one = r.post("/v1/responses", {"input": "Hello", "max_output_tokens": 4})
        same(r.ask("POST", "/workers/1/drain")[0], 200)
        same(r.ask("GET", f"/v1/responses/{one['id']}")[0], 200)  # it alone has it, draining or not
        add(r, workers[0].url())
        r.wait_up(1)
        own.kill()
        began = time.time()
        same(r.ask("GET", f"/v1/responses/{one['id']}")[0] in (502, 503), True)
        assert time.time() - began < 20


def test_policies(workers):
    for policy in ("round_robin", "random", "power_of_two", "least_load", "cache_aware"):
        with Router(workers, "--policy", policy) as r:
            for _ in range(24):
                r.post("/generate", ASK)
            n = [w["requests"] for w in r.table()]
            same(sum(n), 24)
            if policy == "round_robin":
                same(n, [12, 12])
            elif policy != "cache_aware":
                assert min(n) >= 2, (policy, n)


def test_requests_of_other_routers_count(workers):
    """As many as a worker had besides ours when it reported."""
    with Fake() as idle, Fake() as busy, Router([]) as r:
        for fake in (idle, busy):
            fake.replies = {"/cache_feed": fake.feed}
            add(r, fake.url())
        busy.load = 40
        r.wait_up(2)
        time.sleep(0.5)
        for fakes in ((idle, busy), (busy, idle)):
            for _ in range(8):
                r.post("/generate", ASK)
            same([len(fake.asked("/generate")) for fake in fakes], [8, 0])
            idle.load, busy.load = busy.load, idle.load
            time.sleep(0.5)
            idle.seen, busy.seen = [], []


def test_refused_prompts_leave_no_pages(workers):
    """Pages of a prompt that its worker refused are not taken for cached."""
    with Router(workers[:1]) as r:
        r.post("/generate", ASK)
        for i in range(3):
            same(r.ask("POST", "/generate", dict(ASK, text=f"{i} word" + " word" * 5000))[0], 400)
        same([w["expected_pages"] for w in r.table()], [0])


def test_keys(workers):
    with Fake() as fake, Router([], "--api-key", "a", "--api-key", "b", "--worker-api-key", "w", "--worker", fake.url()) as r:
        def ask(key, path="/v1/models"):
            return r.ask("GET", path, headers={"Authorization": f"Bearer {key}"})[0]
        while r.ask("GET", "/health")[0] != 200:
            time.sleep(0.05)
        same([ask("a"), ask("b"), ask("c"), ask("")], [200, 200, 401, 401])
        same(ask("c", "/workers"), 401)
        seen = fake.asked("/v1/models")
        same({s[1]["Authorization"] for s in seen}, {"Bearer w"})
        same(r.ask("GET", "/health")[0], 200)


def test_foreign_workers_pass_through(workers):
    """Headers and bodies of other servers come through; a chunked stream arrives as it is sent."""
    def stream(h):
        h.send_response(200)
        h.send_header("Content-Type", "text/event-stream")
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        for part in (b"data: 1\n\n", b"data: 2\n\n"):
            h.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            go.wait(10)
            go.clear()
        h.wfile.write(b"0\r\n\r\n")

    go = threading.Event()
    with Fake() as fake, Router([]) as r:
        fake.replies = {"/v1/chat/completions": stream, "/v1/models": (200, b"models"), "/x%20y": (404, b"no")}
        add(r, fake.url())
        r.wait_up(1)
        status, headers, data = r.ask("GET", "/v1/models?a=b")
        same((status, headers["X-Own"], data), (200, "kept", b"{}"))
        same(len(fake.asked("/v1/models?a=b")), 1)
        same(r.ask("GET", "/x%20y")[2], b"no")
        c = r.connect()
        c.request("POST", "/v1/chat/completions", "{}")
        reply = c.getresponse()
        same(reply.read1(100), b"data: 1\n\n")
        go.set()
        same(reply.read1(100), b"data: 2\n\n")
        go.set()
        same(reply.read(), b"")
        c.close()


def test_settings_that_differ_are_said(workers):
    """Workers of other models, or not all deterministic, may continue a stream with other bits."""
    def info(**more):
        return 200, json.dumps({"served_model_name": "m", "deterministic": True, "model_path": "/a", "threads": 2, **more}).encode()

    with Fake() as one, Fake() as same_model, Fake() as other, Fake() as silent, Router([]) as r:
        one.replies = {"/get_server_info": info()}
        same_model.replies = {"/get_server_info": info(model_path="/b", threads=3)}
        other.replies = {"/get_server_info": info(served_model_name="n", deterministic=False)}
        silent.replies = {"/get_server_info": (404, b"")}
        for n, fake in enumerate((one, same_model, other, silent)):
            add(r, fake.url())
            r.wait_up(n + 1)
        want = 'from worker 1: served_model_name is "n", there "m"; deterministic is false, there true'
        end = time.time() + 10
        while [w["differs"] for w in r.table()] != [None, None, want, None]:
            assert time.time() < end, r.table()
            time.sleep(0.02)
        same(len(one.asked("/get_server_info")), 1)
    same(sum("may answer otherwise than worker 1: served_model_name" in line for line in "".join(r.log).split("\n")), 1)


def test_retries_and_breaker(workers):
    with Fake() as bad, Fake() as good, Router([], "--cb-timeout-duration-secs", "0.5", "--policy", "round_robin") as r:
        bad.replies["/generate"] = (503, b"{}")
        add(r, bad.url())
        add(r, good.url())
        r.wait_up(2)
        for _ in range(20):
            same(r.ask("POST", "/generate", ASK)[0], 200)
        table = {w["url"]: w for w in r.table()}
        same(table[bad.url()]["breaker"], "open")
        n = len(bad.asked("/generate"))
        assert 5 <= n <= 7, n
        bad.replies["/generate"] = (200, b"{}")
        time.sleep(0.6)
        for _ in range(12):
            same(r.ask("POST", "/generate", ASK)[0], 200)
        same({w["breaker"] for w in r.table()}, {"closed"})
        assert r.count("retries_total") >= 5


def test_full_is_not_ill(workers):
    """429 is passed to another worker, or waited for; it opens no breaker."""
    with Fake() as fake, Router([], "--cb-failure-threshold", "2", "--retry-initial-backoff-ms", "1") as r:
        n = []

        def busy(h):
            n.append(1)
            h.send_response(429 if len(n) % 4 else 200)
            h.send_header("Content-Length", "2")
            h.end_headers()
            h.wfile.write(b"{}")
        fake.replies["/generate"] = busy
        add(r, fake.url())
        r.wait_up(1)
        same([r.ask("POST", "/generate", ASK)[0] for _ in range(5)], [200] * 5)
        same([w["breaker"] for w in r.table()], ["closed"])
        same(len(n), 20)


def test_two_errors_of_500_are_the_requests(workers):
    with Fake() as a, Fake() as b, Router([], "--retry-initial-backoff-ms", "1") as r:
        for f in (a, b):
            f.replies["/generate"] = (500, b'{"error":"not a number"}')
            add(r, f.url())
        r.wait_up(2)
        same(r.ask("POST", "/generate", ASK)[::2], (500, b'{"error":"not a number"}'))
        same([len(f.asked("/generate")) for f in (a, b)], [1, 1])


def test_errors_that_are_the_clients(workers):
    """A request that is wrong is not tried again."""
    with Fake() as fake, Router([]) as r:
        fake.replies["/generate"] = (400, b'{"error":"no"}')
        add(r, fake.url())
        r.wait_up(1)
        same(r.ask("POST", "/generate", ASK)[2], b'{"error":"no"}')
        same(len(fake.asked("/generate")), 1)


def test_no_worker_answers(workers):
    with socket.socket() as s, Fake() as fake, Router([], "--retry-initial-backoff-ms", "1", "--cb-failure-threshold", "100") as r:
        s.bind(("127.0.0.1", 0))
        fake.replies["/generate"] = (503, b"{}")
        add(r, f"http://127.0.0.1:{s.getsockname()[1]}")
        add(r, fake.url())
        r.wait_up(1)
        status, _, data = r.ask("POST", "/generate", ASK)
        same(status, 503)
        same(len(fake.asked("/generate")), 6)


def test_limits(workers):
    hold = threading.Event()

    def slow(h):
        hold.wait(10)
        h.send_response(200)
        h.send_header("Content-Length", "2")
        h.end_headers()
        h.wfile.write(b"{}")

    with Fake() as fake, Router([], "--max-concurrent-requests", "2", "--queue-size", "1") as r:
        fake.replies["/generate"] = slow
        add(r, fake.url())
        r.wait_up(1)
        got = []
        threads = [threading.Thread(target=lambda: got.append(r.ask("POST", "/generate", ASK)[0])) for _ in range(3)]
        for t in threads:
            t.start()
        end = time.time() + 10
        while (r.count("queued_requests") < 1 or len(fake.asked("/generate")) < 2) and time.time() < end:
            time.sleep(0.01)
        status, headers, _ = r.ask("POST", "/generate", ASK)
        same((status, headers["Retry-After"]), (429, "1"))
        same(len(fake.asked("/generate")), 2)
        hold.set()
        for t in threads:
            t.join()
        same(got, [200] * 3)
    with Fake() as fake, Router([], "--rate-limit-tokens-per-second", "2") as r:
        add(r, fake.url())
        r.wait_up(1)
        got = [r.ask("POST", "/generate", ASK)[0] for _ in range(6)]
        assert got.count(200) in (2, 3) and got.count(429) >= 3, got
        time.sleep(0.6)
        same(r.ask("POST", "/generate", ASK)[0], 200)


def test_more_clients_than_descriptors(workers):
    """They wait to be accepted; no worker is blamed for descriptors that the router lacks."""
    ask = dict(LONG, sampling_params=dict(LONG["sampling_params"], max_new_tokens=200))
    with Router(workers, "--engine-hang-secs", "0", launcher=["bash", "-c", 'ulimit -n 200 && exec "$@"', "-"]) as r:
        assert any("instead of 16384" in line for line in r.log), r.log
        clients = [r.connect() for _ in range(120)]
        threads, got = [], []

        def talk(c):
            c.request("POST", "/generate", json.dumps(ask))
            got.append(c.getresponse().read()[-14:])
            c.close()
        for c in clients:
            threads.append(threading.Thread(target=talk, args=(c,)))
            threads[-1].start()
        for t in threads:
            t.join()
        same(got, [b"data: [DONE]\n\n"] * len(clients))
        same((r.count("retries_total"), r.count("failed_total"), r.count("worker_errors_total")), (0, 0, 0))


def test_timeouts(workers):
    def never(h):
        time.sleep(3)

    def stalls(h):
        h.send_response(200)
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        h.wfile.write(b"1\r\na\r\n")
        time.sleep(3)

    with Fake() as fake, Router([], "--first-byte-timeout-secs", "0.2", "--stream-idle-timeout-secs", "0.2", "--disable-retries") as r:
        fake.replies = {"/generate": never, "/v1/models": stalls}
        add(r, fake.url())
        r.wait_up(1)
        began = time.time()
        same(r.ask("POST", "/generate", ASK)[0], 502)
        try:
            r.ask("GET", "/v1/models")
            raise AssertionError("a reply that was cut off looks whole")
        except http.client.IncompleteRead as e:
            same(e.partial, b"a")
        assert time.time() - began < 2


def test_engine_hangs(workers):
    """Health checks are good, but no step is made: its requests move, and it stays down until it generates."""
    def answer(h):
        if not hung:
            hung.append(h.server)
            go.wait(30)
        h.send_response(200)
        h.send_header("Content-Length", "2")
        h.end_headers()
        h.wfile.write(b"{}")

    def metrics(h):
        h.server.n_step += h.server in steps
        body = b'# TYPE a:num_steps_total counter\na:num_steps_total{model_name="}"} %d\n' % h.server.n_step
        h.send_response(200)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        h.wfile.write(body)

    hung, steps, go = [], [], threading.Event()
    with Fake() as a, Fake() as b, Router([], "--engine-hang-secs", "1") as r:
        for f in (a, b):
            f.replies = {"/generate": answer, "/metrics": metrics, "/cache_feed": f.feed, "/health_generate": (503, b"")}
            add(r, f.url())
        r.wait_up(2)
        began = time.time()
        same(r.ask("POST", "/generate", ASK)[0], 200)
        assert 1 < time.time() - began < 8
        state = {w["url"]: (w["health"], w["why"]) for w in r.table()}
        same((state[hung[0].url()][0], state[(b if hung[0] is a else a).url()][0]), ("down", "up"), state)
        time.sleep(1)
        same(sum(w["is_healthy"] for w in r.table()), 1)
        hung[0].replies["/health_generate"] = (200, b"")
        r.wait_up(2)
        go.set()
        hung.clear()
        go.clear()
        steps += [a, b]  # a long prompt: no byte for long, but steps
        got = []
        t = threading.Thread(target=lambda: got.append(r.ask("POST", "/generate", ASK)[0]))
        t.start()
        time.sleep(4)
        same((got, len(hung), [w["health"] for w in r.table()]), ([], 1, ["up", "up"]))
        go.set()
        t.join()
        same(got, [200])


def test_client_leaves(workers):
    """An answer whose client has disconnected is not generated."""
    with Router(workers) as r:
        c = r.connect()
        c.request("POST", "/generate", json.dumps(LONG))
        c.getresponse().read1(1000)
        c.close()
        r.wait_idle()
        same(sum(w["load"] for w in r.table()), 0)


def test_log(workers):
    with Router(workers, "--log-requests") as r:
        same(r.ask("POST", "/generate", ASK, {"x-request-id": "my-name"})[1]["x-request-id"], "my-name")
        r.ask("POST", "/generate", "{")
    lines = [json.loads(x) for x in "".join(r.log).split("\n") if x.startswith("{")]
    posts = [x for x in lines if x["path"] == "/generate"]
    same([(x["status"], x["tries"]) for x in posts], [(200, 1), (400, 1)])
    same(posts[0]["request_id"], "my-name")
    assert posts[0]["worker"] in [w.url() for w in workers]


def test_metrics_are_well_formed(workers):
    with Router(workers) as r:
        r.post("/generate", ASK)
        text = r.get("/metrics").decode()
        for line in text.splitlines():
            assert re.match(r'^(# (HELP|TYPE) fathom_router:\w+ .+|fathom_router:\w+(\{(\w+="[^"]*",?)+\})? [-+.\deE]+)$', line), line
        same(r.count("worker_requests_total"), 1)
        same(r.count("worker_first_byte_seconds_count"), 1)


def test_engine_metrics(workers):
    """Everybody's metrics in one text: families stand together, samples name their worker."""
    with Fake() as dumb, Router(workers) as r:
        dumb.replies["/metrics"] = (200, b"not metrics at all")
        add(r, dumb.url())
        r.wait_up(3)
        before = {w.url(): w.metric("num_requests_total") for w in workers}
        r.post("/generate", ASK)
        text = r.get("/engine_metrics").decode()
        families = re.findall(r"^# TYPE (\S+)", text, re.M)
        same(len(families), len(set(families)))
        n = {}
        for url, value in re.findall(r'^fathom:num_requests_total\{worker="([^"]*)",[^}]*\} (\S+)$', text, re.M):
            n[url] = float(value)
        same(set(n), {w.url() for w in workers})
        same(sum(n.values()), sum(before.values()) + 1)
        for family in families:  # as Prometheus wants it: one group each
            names = [m[1] for m in re.finditer(r"^([\w:]+)\{", text, re.M)]
            at = [i for i, name in enumerate(names) if re.fullmatch(re.escape(family) + "(_bucket|_sum|_count)?", name)]
            same(at, list(range(at[0], at[0] + len(at))), family)
        add(r, "http://127.0.0.1:1")
        workers[1].kill(signal.SIGSTOP)
        began = time.time()
        same(r.ask("GET", "/engine_metrics")[0], 200)
        workers[1].kill(signal.SIGCONT)
        assert time.time() - began < 6


def test_graceful_end(workers):
    r = Router(workers)
    c = r.connect()
    c.request("POST", "/generate", json.dumps(dict(LONG, sampling_params=dict(LONG["sampling_params"], max_new_tokens=1000))))
    reply = c.getresponse()
    reply.read1(100)
    r.process.send_signal(signal.SIGTERM)
    data = reply.read()
    assert data.endswith(b"data: [DONE]\n\n"), data[-100:]
    same(r.process.wait(30), 0)
    r.process.stderr.close()
    c.close()


def test_two_routers(workers):
    with Router(workers) as a, Router(workers) as b:
        same(a.post("/generate", ASK)["text"], b.post("/generate", ASK)["text"])


if __name__ == "__main__":
    pair = [Worker(), Worker()]
    try:
        run_all(globals(), pair)
    finally:
        for w in pair:
            w.process.kill()
