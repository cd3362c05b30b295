#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mock server: the endpoints that fathom's page and benchmark use, with
known delays and counts.  Prints its port, serves until killed.

    mock/server.py [--page FILE] [--ttft S] [--itl S] [--per-event N] [--fail-every N] [--tls PEM]

An answer to a prompt with a token limit and ignore_eos is that many tokens,
"w0 w1 w2 ..."; GET /mock/log lists what was asked and how it ended.
"""
import argparse
import json
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from answers import CONTEXT, reply_to  # noqa: E402
from exposition import Metrics  # noqa: E402

options = None
metrics = Metrics()
lock = threading.Lock()
log = []


class Gone(Exception):
    pass


def server_info():
    return {"version": "0.0-mock", "model_path": "mock/tiny", "served_model_name": "mock-tiny", "dtype": "bfloat16",
            "device": "cpu", "context_length": CONTEXT, "max_total_num_tokens": 65536, "page_size": 16,
            "max_running_requests": 256, "chunked_prefill_size": 2048, "schedule_policy": "fcfs",
            "default_sampling_params": {"temperature": 0.6, "top_p": 0.95},
            "internal_states": [{"last_gen_throughput": 123.4, "avg_spec_accept_length": options.accept_length,
                                 "spec_accept_rate": options.accept_rate}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def send(self, status, kind, text, **headers):
        body = text if isinstance(text, bytes) else text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def send_json(self, status, value, **headers):
        self.send(status, "application/json", json.dumps(value), **headers)

    def fail(self, status, message, code=None, **headers):
        self.send_json(status, {"error": {"message": message, "type": "invalid_request_error", "code": code}}, **headers)

    def refuses_key(self):
        if not options.api_key or self.headers.get("Authorization") == f"Bearer {options.api_key}":
            return False
        self.fail(401, "the API key is missing or wrong")
        return True

    def do_GET(self):
        path = self.path.split("?")[0]
        if path in ("/v1/models", "/server_info") and self.refuses_key():
            return
        if path == "/" and options.page:
            with open(options.page, "rb") as f:
                self.send(200, "text/html; charset=utf-8", f.read())
        elif path == "/v1/models":
            model = {"id": "mock-tiny", "object": "model", "max_model_len": CONTEXT}
            self.send_json(200, {"object": "list", "data": [model]})
        elif path == "/model_info":
            self.send_json(200, {"model_path": "mock/tiny", "tokenizer_path": "", "vocab_size": 1000})
        elif path == "/server_info":
            self.send_json(200, server_info())
        elif path == "/metrics":
            self.send(200, "text/plain; version=0.0.4",
                      metrics.text().replace("fathom:", options.prefix + ":"))
        elif path == "/mock/log":
            with lock:
                self.send_json(200, log)
        else:
            self.fail(404, f"there is no {path} here")

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.refuses_key():
            return None
        if self.path == "/flush_cache":
            with lock:
                log.append({"path": self.path})
            return self.send(200, "text/plain", "Cache flushed.\n")
        try:
            body = json.loads(raw)
        except ValueError:
            return self.fail(400, "the body is no JSON")
        entry = {"path": self.path, "body": body, "end": "open", "key": self.headers.get("Authorization")}
        with lock:
            log.append(entry)
            n = len(log)
        if options.fail_every and n % options.fail_every == 0:
            entry["end"] = "refused"
            return self.fail(503, "the queue is full", Retry_After="1")
        self.answer(entry, body)

    def answer(self, entry, body):
        reply = reply_to(self.path, body)
        if reply is None:
            return self.fail(404, f"there is no {self.path} here")
        if reply.status != 200:
            entry["end"] = "refused"
            return self.fail(reply.status, reply.message, reply.code)
        began = time.monotonic()
        metrics.begin(reply.n_prompt)
        try:
            (self.stream if body.get("stream") else self.whole)(reply, began)
            entry["end"] = "done"
        except (Gone, OSError):
            entry["end"] = "disconnected"
            self.close_connection = True
        finally:
            metrics.end(time.monotonic() - began)

    def chunk(self, text):
        data = text.encode()
        try:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        except OSError:
            raise Gone()

    def event(self, value):
        self.chunk("data: " + (value if isinstance(value, str) else json.dumps(value)) + "\n\n")

    def whole(self, reply, began):
        time.sleep(options.ttft + options.itl * max(0, reply.n_token - 1))
        metrics.first(time.monotonic() - began)
        metrics.tokens(reply.n_token, options.itl)
        self.send_json(200, reply.complete())

    def stream(self, reply, began):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in reply.opening():
            self.event(event)
        step = options.per_event
        pace = reply.pace if reply.pace is not None else options.itl
        time.sleep(options.ttft)
        metrics.first(time.monotonic() - began)
        due = time.monotonic()
        for start in range(0, reply.n_token, step):
            if start:  # paced from the start, so that delays do not add up
                due += pace * step
                time.sleep(max(0.0, due - time.monotonic()))
            stop = min(start + step, reply.n_token)
            self.event(reply.piece(start, stop))
            metrics.tokens(stop - start, pace)
        for event in reply.closing():
            self.event(event)
        self.chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


def main():
    global options
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--page")
    p.add_argument("--ttft", type=float, default=0.05)
    p.add_argument("--itl", type=float, default=0.01)
    p.add_argument("--per-event", type=int, default=1)
    p.add_argument("--fail-every", type=int, default=0)
    p.add_argument("--accept-length", type=float, default=None)
    p.add_argument("--accept-rate", type=float, default=None)
    p.add_argument("--api-key")
    p.add_argument("--prefix", default="fathom", help="of the names at /metrics")
    p.add_argument("--tls", help="a file with certificate and key")
    options = p.parse_args()
    server = Server(("127.0.0.1", options.port), Handler)
    if options.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
