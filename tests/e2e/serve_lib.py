# SPDX-License-Identifier: Apache-2.0
"""A server to test against, and small clients for it (standard library only)."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
FATHOM = sys.argv[1]

# R1's structure, a fraction of a millisecond per step.
SHAPE = {
    "num_hidden_layers": 2, "hidden_size": 128, "intermediate_size": 256, "moe_intermediate_size": 64,
    "n_routed_experts": 8, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2, "vocab_size": 4128,
    "num_attention_heads": 2, "num_key_value_heads": 2, "q_lora_rank": 64, "kv_lora_rank": 64,
    "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32, "max_position_embeddings": 4096,
}
MODEL = ["--model-path", "r1-mini", "--load-format", "dummy", "--json-model-override-args", json.dumps(SHAPE), "--quiet"]
TOKENIZER = ["--tokenizer-path", os.path.join(DATA, "tokenizer")]
ENV = dict(os.environ, OMP_WAIT_POLICY="passive")


class Server:
    is_router = False

    def __init__(self, *args, model=MODEL + TOKENIZER + ["--max-total-tokens", "65536"], launcher=()):
        self.start([*launcher, FATHOM, "serve", "--port", "0", *model, *args])

    def start(self, argv):
        """Until it listens."""
        self.process = subprocess.Popen(argv, env=ENV, text=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.log = []
        for line in self.process.stderr:
            found = re.search(r"listening on (https?)://[\d.]+:(\d+)", line)
            if found:
                self.port = int(found[2])
                break
            self.log.append(line)
        else:
            raise SystemExit("it did not start: " + "".join(self.log))

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.stop()
        else:
            self.process.kill()
            print(self.process.communicate()[1][-4000:])

    def stop(self, want=0):
        self.process.send_signal(signal.SIGTERM)
        self.log.append(self.process.communicate(timeout=60)[1])
        same(self.process.returncode, want)

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers, bytes."""
        c = self.connect()
        c.request(method, path, body if body is None or isinstance(body, (bytes, str)) else json.dumps(body),
                  headers or {})
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, r.headers, data

    def get(self, path):
        status, _, data = self.ask("GET", path)
        same(status, 200)
        return data

    def post(self, path, body, want=200):
        status, _, data = self.ask("POST", path, body)
        if status != want:
            raise AssertionError(f"{path}: {status}, want {want}: {data[:2000]}")
        return json.loads(data)

    def stream(self, path, body):
        """The events of a stream as JSON; the closing [DONE] is checked, not returned."""
        status, headers, data = self.ask("POST", path, dict(body, stream=True))
        same(status, 200)
        assert headers["Content-Type"].startswith("text/event-stream"), headers
        events = [e for e in data.decode().split("\n\n") if e]
        lines = [line for e in events for line in e.split("\n") if line.startswith("data: ")]
        if path != "/v1/messages":
            same(lines.pop(), "data: [DONE]")
        return [json.loads(line[6:]) for line in lines]

    def raw(self):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        return s

    def metric(self, name):
        text = self.get("/metrics").decode()
        found = re.search(rf"^[a-z]+:{name}\{{[^}}]*\}} (\S+)$", text, re.M)
        assert found, name
        return float(found[1])

    def wait_idle(self, seconds=10):
        end = time.time() + seconds
        while time.time() < end:
            if self.metric("num_running_reqs") == 0 and self.metric("num_queue_reqs") == 0:
                return
            time.sleep(0.02)
        raise AssertionError("requests are still running")


def same(got, want, what=""):
    if got != want:
        raise AssertionError(f"{what} {got!r}, want {want!r}"[:20000])


def run_all(scope, *args):
    """Every test_ function of a module, in order."""
    for name, f in list(scope.items()):
        if name.startswith("test_"):
            began = time.time()
            f(*args)
            print(f"ok {name} {time.time() - began:.2f} s", flush=True)
