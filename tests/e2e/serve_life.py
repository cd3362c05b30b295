#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""fathom serve under way: keys, queue, cancelling, time-outs, TLS, the end."""
import json
import os
import re
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import http.client

from serve_lib import MODEL, SHAPE, TOKENIZER, Server, run_all, same

ASK = {"text": "Hello", "sampling_params": {"max_new_tokens": 4, "temperature": 0}}
LONG = {"text": "Hello", "sampling_params": {"max_new_tokens": 4000, "temperature": 0, "ignore_eos": True}}
POOL = MODEL + TOKENIZER + ["--max-total-tokens", "65536"]


def open_stream(s, body=None):
    """A connection whose stream has begun."""
    c = s.connect()
    c.request("POST", "/generate", json.dumps(dict(body or LONG, stream=True)))
    r = c.getresponse()
    assert r.readline().startswith(b"data: ")
    return c, r


def test_key():
    with Server("--api-key", "secret", "--served-model-name", "other/name", "--metrics-prefix", "sglang") as s:
        same(s.ask("POST", "/generate", ASK)[0], 401)
        same(s.ask("POST", "/generate", ASK, {"Authorization": "Bearer secre"})[0], 401)
        same(s.ask("POST", "/generate", ASK, {"Authorization": "Bearer secret"})[0], 200)
        same(s.ask("POST", "/v1/messages", {"max_tokens": 1, "messages": [{"role": "user", "content": "a"}]},
                   {"x-api-key": "secret"})[0], 200)
        same([s.ask("GET", p)[0] for p in ("/health", "/metrics", "/")], [200, 200, 200])
        same(s.ask("GET", "/server_info")[0], 401)
        models = s.ask("GET", "/v1/models", headers={"Authorization": "Bearer secret"})[2]
        same(json.loads(models)["data"][0]["id"], "other/name")
        same(s.ask("GET", "/v1/models/other%2Fname", headers={"Authorization": "Bearer secret"})[0], 200)
        assert b'sglang:num_running_reqs{model_name="other/name"' in s.get("/metrics")


def test_leaving_cancels():
    with Server() as s:
        for _ in range(3):
            c, r = open_stream(s)
            assert s.metric("num_running_reqs") == 1
            c.close()
            r.close()
            s.wait_idle(5)
        c = s.connect()  # not a stream: nothing has been sent when the client leaves
        c.request("POST", "/generate", json.dumps(LONG))
        time.sleep(0.2)
        c.close()
        s.wait_idle(5)
        assert s.metric("num_used_tokens") == 0
        assert s.metric("num_aborted_requests_total") >= 4


def test_abort():
    with Server() as s:
        got = {}

        def run(name):
            got[name] = s.post("/generate", dict(LONG, rid=name))

        threads = [threading.Thread(target=run, args=(n,)) for n in ("one", "two")]
        for t in threads:
            t.start()
        while s.metric("num_running_reqs") < 2:
            time.sleep(0.02)
        s.post("/abort_request", {"rid": "one"})
        threads[0].join()
        same(got["one"]["meta_info"]["finish_reason"]["type"], "abort")
        assert "two" not in got
        s.post("/abort_request", {"abort_all": True})
        threads[1].join()
        same(got["two"]["meta_info"]["finish_reason"]["type"], "abort")
        same(s.ask("POST", "/abort_request", {})[0], 400)
        same(s.ask("GET", "/flush_cache")[0], 200)


def test_abort_one_of_a_batch():
    with Server() as s:
        got = []
        shorter = dict(LONG["sampling_params"], max_new_tokens=1500)
        many = {"text": ["Hello", "Bye"], "rid": ["one", "two"], "sampling_params": [LONG["sampling_params"], shorter]}
        t = threading.Thread(target=lambda: got.extend(s.post("/generate", many)))
        t.start()
        while s.metric("num_running_reqs") < 2:
            time.sleep(0.01)
        s.post("/abort_request", {"rid": "one"})
        t.join()
        same([a["meta_info"]["finish_reason"]["type"] for a in got], ["abort", "length"])


def test_abort_before_it_is_read():
    """The abort comes while a worker still tokenises."""
    slow = dict(LONG, text=["many words " * 1000] * 100, sampling_params={"max_new_tokens": 900, "ignore_eos": True})
    with Server() as s:
        for name, stop in (("mine", {"rid": "mine"}), ("all", {"abort_all": True})):
            got = []
            t = threading.Thread(target=lambda: got.extend(s.post("/generate", dict(slow, rid=name))))
            t.start()
            while s.metric("num_queue_reqs") < 1:
                time.sleep(0.001)
            s.post("/abort_request", {"rid": "another's"})
            s.post("/abort_request", stop)
            t.join()
            same({a["meta_info"]["finish_reason"]["type"] for a in got}, {"abort"})


def test_full_queue():
    with Server("--max-running-requests", "2", "--max-queued-requests", "2") as s:
        busy = [open_stream(s) for _ in range(2)]
        same(s.ask("POST", "/flush_cache")[0], 400)
        waiting = [threading.Thread(target=s.ask, args=("POST", "/generate", ASK)) for _ in range(2)]
        for t in waiting:
            t.start()
        while s.metric("num_queue_reqs") < 2:
            time.sleep(0.02)
        status, headers, body = s.ask("POST", "/generate", ASK)
        same((status, headers["Retry-After"]), (429, "1"))
        same(json.loads(body)["error"]["type"], "rate_limit_error")
        assert s.metric("num_refused_requests_total") == 1
        same(s.ask("GET", "/health")[0], 200)
        for c, r in busy:
            c.close()
            r.close()
        for t in waiting:
            t.join()
        same(s.ask("POST", "/generate", ASK)[0], 200)


def test_health_checks_share_one_token():
    """They need no key, so however many there are, they take no room from requests."""
    key = {"Authorization": "Bearer k"}
    with Server("--api-key", "k", "--max-running-requests", "1", "--max-queued-requests", "4") as s:
        busy = s.connect()
        busy.request("POST", "/generate", json.dumps(dict(LONG, stream=True)), key)
        stream = busy.getresponse()
        assert stream.readline().startswith(b"data: ")
        askers = [s.connect() for _ in range(12)]
        for c in askers:
            c.request("GET", "/health_generate")
        while s.metric("num_queue_reqs") < 1:
            time.sleep(0.01)
        time.sleep(0.1)
        same(s.metric("num_queue_reqs"), 1)
        got = []
        usual = threading.Thread(target=lambda: got.append(s.ask("POST", "/generate", ASK, key)[0]))
        usual.start()
        while s.metric("num_queue_reqs") < 2 and not got:
            time.sleep(0.01)
        same(got, [])
        askers.pop(0).close()  # the one that the others wait for
        same(s.ask("POST", "/abort_request", {"abort_all": True}, key)[0], 200)
        stream.close()
        busy.close()
        same([c.getresponse().status for c in askers], [200] * 11)
        usual.join()
        for c in askers:
            c.close()


def test_priority():
    with Server("--max-running-requests", "1") as s:
        c, r = open_stream(s)
        order = []

        def run(name, priority):
            s.post("/generate", {"text": "Hello", "priority": priority,
                                 "sampling_params": {"max_new_tokens": 300, "temperature": 0, "ignore_eos": True}})
            order.append(name)  # long enough for the order of replies to be that of the queue

        threads = []
        for name, priority in (("low", -5), ("usual", 0), ("high", 5)):
            threads.append(threading.Thread(target=run, args=(name, priority)))
            threads[-1].start()
            while s.metric("num_queue_reqs") < len(threads):
                time.sleep(0.01)
        c.close()
        r.close()
        for t in threads:
            t.join()
        same(order, ["high", "usual", "low"])


def test_request_timeout():
    with Server("--request-timeout", "0.3") as s:
        status, _, body = s.ask("POST", "/generate", LONG)
        same((status, json.loads(body)["error"]["type"]), (503, "overloaded_error"))
        c, r = open_stream(s)
        text = r.read().decode()
        assert '"error"' in text and text.endswith("data: [DONE]\n\n"), text[-400:]
        c.close()
        s.wait_idle()
        same(s.ask("POST", "/generate", ASK)[0], 200)


def test_slow_reader():
    body = dict(LONG, return_logprob=True, top_logprobs_num=20)
    with Server() as s:
        c, r = open_stream(s, body)  # cumulative events: megabytes that the client does not read
        same(s.ask("POST", "/generate", ASK)[0], 200)
        s.wait_idle(50)
        assert s.metric("num_aborted_requests_total") == 1
        c.close()


def test_large_events():
    """Each event repeats the prompt's logprobs, more than may be left unread; a client that reads gets to the end."""
    shape = json.dumps(dict(SHAPE, max_position_embeddings=32768))
    model = ["--model-path", "r1-mini", "--load-format", "dummy", "--json-model-override-args", shape, "--quiet"] + TOKENIZER
    body = {"input_ids": [10 + i * 7919 % 4000 for i in range(16000)], "stream": True, "return_logprob": True, "logprob_start_len": 0,
            "top_logprobs_num": 20, "return_text_in_logprobs": True, "sampling_params": {"max_new_tokens": 8, "ignore_eos": True}}
    with Server(model=model + ["--max-total-tokens", "65536"]) as s:
        c = s.connect(timeout=300)
        c.request("POST", "/generate", json.dumps(body))
        *events, done, _ = c.getresponse().read().decode().split("\n\n")
        c.close()
        same(done, "data: [DONE]")
        assert min(map(len, events)) > 8 << 20, list(map(len, events))
        last = json.loads(events[-1][6:])
        same((len(last["output_ids"]), last["meta_info"]["finish_reason"]["type"]), (8, "length"))


def test_keep_alive():
    with Server() as s:
        c = s.connect()
        for i in range(50):
            c.request("POST", "/generate", json.dumps(dict(ASK, stream=bool(i % 2))))
            r = c.getresponse()
            r.read()
            same(r.status, 200)
        same(s.metric("num_connections"), 2)
        c.close()


def test_drain():
    with Server() as s:
        c, r = open_stream(s, {"text": "Hello", "sampling_params": {"max_new_tokens": 1500, "temperature": 0, "ignore_eos": True}})
        idle = s.connect()
        idle.request("GET", "/health")
        idle.getresponse().read()
        s.process.send_signal(signal.SIGTERM)
        text = r.read().decode()
        assert '"type":"length"' in text and text.endswith("data: [DONE]\n\n"), text[-300:]
        s.process.wait(timeout=20)
        same(s.process.returncode, 0)
        s.stop = lambda: None


def test_second_signal():
    with Server() as s:
        c, r = open_stream(s)
        s.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        same(s.process.poll(), None)
        began = time.time()
        s.process.send_signal(signal.SIGTERM)
        s.process.wait(timeout=20)
        assert time.time() - began < 2
        same(s.process.returncode, 143)
        s.stop = lambda: None
        c.close()


def test_cors():
    ask = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    with Server("--cors-origins", "https://a.example,https://b.example", "--api-key", "k") as s:
        status, h, _ = s.ask("OPTIONS", "/v1/chat/completions", headers=ask)
        same((status, h["Access-Control-Allow-Origin"], h["Vary"]), (200, "https://a.example", "Origin"))
        same(h["Access-Control-Allow-Headers"], None)
        # what the JavaScript packages openai and @anthropic-ai/sdk send
        names = ("authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,"
                 "x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout,"
                 "anthropic-version,anthropic-beta,anthropic-dangerous-direct-browser-access,x-api-key,openai-organization,"
                 "openai-project,idempotency-key,x-request-id")
        more = {"Access-Control-Request-Headers": names, "Access-Control-Request-Private-Network": "true"}
        for path in ("/v1/chat/completions", "/v1/messages", "/v1/models"):
            status, h, _ = s.ask("OPTIONS", path, headers=dict(ask, **more))
            same((status, h["Access-Control-Allow-Headers"]), (200, names))
            same(h["Access-Control-Allow-Private-Network"], "true")
        same(s.ask("OPTIONS", path, headers=dict(ask, Origin="https://c.example", **more))[1]["Access-Control-Allow-Headers"], None)
        status, h, _ = s.ask("GET", "/v1/models", headers={"Origin": "https://b.example"})
        same((status, h["Access-Control-Allow-Origin"]), (401, "https://b.example")) # errors can be read, too
        status, h, _ = s.ask("OPTIONS", "/v1/models", headers=dict(ask, Origin="https://c.example"))
        same((status, h["Access-Control-Allow-Origin"]), (403, None))
        body = {"prompt": "a", "max_tokens": 2, "stream": True}
        status, h, _ = s.ask("POST", "/v1/completions", body, {"Origin": "https://a.example", "Authorization": "Bearer k"})
        same((status, h["Access-Control-Allow-Origin"]), (200, "https://a.example"))
        assert "x-request-id" in h["Access-Control-Expose-Headers"]
    with Server("--cors-origins", "*") as s:
        same(s.ask("GET", "/v1/models", headers={"Origin": "null"})[1]["Access-Control-Allow-Origin"], "*")
    with Server() as s:
        same(s.ask("GET", "/v1/models", headers={"Origin": "https://a.example"})[1]["Access-Control-Allow-Origin"], None)
        same(s.ask("OPTIONS", "/v1/models", headers=ask)[0], 403)
        same(s.ask("OPTIONS", "/v1/models")[0], 405)


def test_batch_log():
    """Without --quiet: a line per prefill and one for every few steps that generate."""
    loud = [a for a in MODEL if a != "--quiet"] + TOKENIZER
    with Server("--decode-log-interval", "5", model=loud) as s:
        for _ in range(2):
            s.post("/generate", {"text": "hello world " * 30, "sampling_params": {"max_new_tokens": 12, "ignore_eos": True}})
    lines = s.log[-1].splitlines()
    prefills = [line for line in lines if "Prefill batch" in line]
    same(len(prefills), 2)
    same(len([line for line in lines if "Decode batch" in line]), 4)
    for line in prefills:
        assert re.search(r"#new-seq: 1, #new-token: \d+, #cached-token: \d+, token usage: \d\.\d\d, #running-req: \d, #queue-req: 0", line), line
    assert "#cached-token: 0," in prefills[0] and "#cached-token: 0," not in prefills[1], prefills
    with Server("--decode-log-interval", "1") as s:
        s.post("/generate", {"text": "hello"})
    assert "batch" not in "".join(s.log), s.log


def test_access_log():
    with Server("--log-requests") as s:
        s.post("/generate", dict(ASK, rid="abc"))
        s.ask("GET", "/nowhere")
    lines = [json.loads(line) for line in "".join(s.log).splitlines() if line.startswith("{")]
    same([(x["method"], x["path"], x["status"]) for x in lines], [("POST", "/generate", 200), ("GET", "/nowhere", 404)])
    same((lines[0]["id"], lines[0]["output_tokens"]), ("abc", 4))


def test_tls():
    with tempfile.TemporaryDirectory() as d:
        cert, key = os.path.join(d, "cert.pem"), os.path.join(d, "key.pem")
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                               "-days", "2", "-subj", "/CN=localhost"], capture_output=True)
        if made.returncode:
            print("no openssl command: TLS not tested")
            return
        with Server("--ssl-certfile", cert, "--ssl-keyfile", key) as s:
            trust = ssl.create_default_context(cafile=cert)
            trust.check_hostname = False
            c = http.client.HTTPSConnection("127.0.0.1", s.port, context=trust, timeout=20)
            for stream in (False, True, False):
                c.request("POST", "/generate", json.dumps(dict(ASK, stream=stream)))
                r = c.getresponse()
                same((r.status, len(r.read()) > 50), (200, True))
            plain = s.raw()
            plain.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            try:
                assert b"HTTP/1.1 200" not in plain.recv(1000)
            except ConnectionResetError:
                pass
            plain.close()
            c.request("POST", "/generate", json.dumps(dict(LONG, stream=True)))
            r = c.getresponse()
            r.readline()
            c.sock.close()
            r.close()
            c2 = http.client.HTTPSConnection("127.0.0.1", s.port, context=trust, timeout=20)
            for _ in range(100):
                c2.request("GET", "/v1/loads")
                if json.loads(c2.getresponse().read())["loads"][0]["num_running_reqs"] == 0:
                    break
                time.sleep(0.05)
            else:
                raise AssertionError("a request goes on after its client left")
            c2.close()


def test_incremental_and_no_tokenizer():
    with Server("--incremental-streaming-output") as s:
        events = s.stream("/generate", ASK)
        same(sum([e["output_ids"] for e in events], []), s.post("/generate", ASK)["output_ids"])
    with Server(model=MODEL + ["--max-total-tokens", "4096"]) as s:
        r = s.post("/generate", {"input_ids": [1, 2, 3], "sampling_params": {"max_new_tokens": 4, "temperature": 0}})
        same((len(r["output_ids"]), r["text"]), (4, ""))
        for path, body in (("/generate", ASK), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
                           ("/v1/tokenize", {"prompt": "a"})):
            assert "tokenizer" in s.post(path, body, 400)["message"]


if __name__ == "__main__":
    run_all(globals())
