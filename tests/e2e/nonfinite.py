#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Weights that are NaN or infinite: the requests they affect get an error, all others are served."""
import json
import os
import subprocess
import tempfile
import threading

from serve_lib import DATA, ENV, FATHOM, Server, run_all, same
from spoil import INF, MINUS_INF, NAN, spoil

TINY = os.path.join(DATA, "..", "..", "models", "fathom-tiny")
WORDS = "logits are not finite"
HELLO = [{"role": "user", "content": "Hello"}]


def strict(text):
    """JSON as the standard has it: Python's reader takes NaN and Infinity by itself."""
    def refuse(word):
        raise AssertionError(f"{word} is no JSON")
    return json.loads(text, parse_constant=refuse)


def serve(model, *args):
    return Server(*args, model=["--model-path", model, "--quiet", "--max-total-tokens", "8192"])


def fathom(*args):
    return subprocess.run([FATHOM, *args], env=ENV, text=True, capture_output=True, timeout=100)


def bench(model, *args):
    return fathom("bench", "--model-path", model, "--quiet", "--skip-warmup", "--num-prompts", "4", "--dataset-name",
                  "random", "--random-input-len", "16", "--random-output-len", "4", *args)


def test_every_dialect_says_why(work):
    asks = [("/v1/chat/completions", {"messages": HELLO, "max_tokens": 4}),
            ("/v1/chat/completions", {"messages": HELLO, "max_tokens": 4, "temperature": 0, "logprobs": True}),
            ("/v1/chat/completions", {"messages": HELLO, "max_tokens": 4, "n": 3, "top_p": 0.5}),
            ("/v1/chat/completions", {"messages": HELLO, "max_tokens": 9, "response_format": {"type": "json_object"}}),
            ("/v1/completions", {"prompt": "Once", "max_tokens": 4, "min_tokens": 2}),
            ("/v1/completions", {"prompt": "Once upon", "max_tokens": 0, "echo": True, "logprobs": 2}),
            ("/v1/completions", {"prompt": ["a", "b"], "max_tokens": 4, "repetition_penalty": 1.2}),
            ("/v1/messages", {"messages": HELLO, "max_tokens": 4}),
            ("/generate", {"text": "Once", "return_logprob": True, "logprob_start_len": 0})]
    with serve(work.nan) as s:
        for path, body in asks:
            r = s.post(path, body, want=500)
            assert WORDS in r["error"]["message"], r
            assert s.ask("POST", path, json.dumps(dict(body, stream=True)))[0] == 500, path
        status, _, data = s.ask("GET", "/health_generate")
        same(status, 503)
        assert WORDS.encode() in data, data
        assert s.metric("nonfinite_logits_total") >= 2 * len(asks), s.metric("nonfinite_logits_total")
        same(s.metric("num_running_reqs"), 0)


def test_an_infinite_logit_is_found_whatever_its_sign(work):
    for model in (work.inf, work.minus):
        with serve(model) as s:
            r = s.post("/generate", {"text": "Once upon a time", "sampling_params": {"temperature": 0}}, want=500)
            assert WORDS in r["error"]["message"], r


def ids_of(s, text):
    return s.post("/tokenize", {"prompt": text})["tokens"]


def test_other_requests_go_on(work):
    """Only prompts with one word fail: before, beside and after it others get the answers they always get."""
    good = {"input_ids": [5, 6, 7, 8], "sampling_params": {"temperature": 0, "max_new_tokens": 40, "ignore_eos": True}}
    bad = dict(good, input_ids=[5, 6, work.token, 8])
    with serve(TINY) as s:
        want = s.post("/generate", good)["output_ids"]
    assert work.token not in want, want
    with serve(work.word) as s:
        got = [None] * 24

        def ask(i):
            status, _, data = s.ask("POST", "/generate", json.dumps(bad if i % 3 == 1 else good))
            got[i] = (status, json.loads(data))
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(got))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for i, (status, r) in enumerate(got):
            same(status, 500 if i % 3 == 1 else 200, i)
            if status == 200:
                same(r["output_ids"], want, i)
        same(s.ask("GET", "/health_generate")[0], 200)


def test_a_stream_that_fails_late(work):
    """An error inside a stream: the model itself produces the spoiled word."""
    with serve(TINY) as s:
        ask = {"text": "Once upon a time", "sampling_params": {"temperature": 0, "max_new_tokens": 24, "ignore_eos": True}}
        ids = s.post("/generate", ask)["output_ids"]
        prompt = ids_of(s, "Once upon a time")
    late = next(t for i, t in enumerate(ids) if i >= 4 and t not in ids[:i] and t not in prompt)
    model = spoil(TINY, os.path.join(work.dir, "late"), "model.embed_tokens.weight", (late, 3), NAN)
    with serve(model) as s:
        for path, body in (("/generate", ask), ("/v1/completions", {"prompt": "Once upon a time", "temperature": 0,
                                                                   "max_tokens": 24, "ignore_eos": True})):
            events = s.stream(path, body)
            assert len(events) >= 4 and WORDS in events[-1]["error"]["message"], events[-1]
            assert all("error" not in e for e in events[:-1])


def test_bench_counts_failures(work):
    details, line = os.path.join(work.dir, "details"), os.path.join(work.dir, "line")
    for more in ([], ["--return-logprob", "--logprob-start-len", "0"]):
        r = bench(work.nan, "--output-details", details, "--result-filename", line, *more)
        same(r.returncode, 2, r)
        assert WORDS in r.stderr and "4 of 4 requests failed" in r.stderr, r
        assert "Failed requests:                         4" in r.stdout, r.stdout
        rows = [strict(x) for x in open(details).read().splitlines()]
        same([x["finish_reason"] for x in rows], ["error"] * 4)
        last = strict(open(line).read().splitlines()[-1])
        same((last["successful_requests"], last["failed_requests"]), (0, 4))
    r = fathom("bench", "--model-path", work.nan, "--quiet", "--skip-warmup", "--batch-size", "2", "--input-len", "8",
               "--output-len", "4")
    same((r.returncode, WORDS in r.stderr), (2, True), r)


def test_run_and_eval_fail(work):
    r = fathom("run", "--model-path", work.nan, "--quiet", "Hello")
    same((r.returncode, WORDS in r.stderr), (2, True), r)
    r = fathom("eval", "--model-path", work.nan, "--quiet", "--set", os.path.join(DATA, "tiny", "held_out.jsonl"))
    same((r.returncode, WORDS in r.stderr), (2, True), r)


def test_verify_reports_every_case(work):
    for dtype in ("auto", "float32"):
        r = fathom("verify", "--model-path", work.nan, "--quiet", "--golden", os.path.join(DATA, "tiny", "golden.json"),
                   "--dtype", dtype, "--json")
        same(r.returncode, 1, r)
        out = strict(r.stdout)
        same(out["verdict"], "fail")
        assert len(out["cases"]) >= 3 and all(c["verdict"] == "FAIL" and c["finite"] is False for c in out["cases"]), out
    r = fathom("verify", "--model-path", work.nan, "--quiet", "--golden", os.path.join(DATA, "tiny", "golden.json"))
    same((r.returncode, "NaN or infinite" in r.stdout), (1, True), r)


class Work:
    def __init__(self, folder):
        self.dir, self.token = folder, 900
        at = lambda name, *how: spoil(TINY, os.path.join(folder, name), *how)
        self.nan = at("nan", "model.layers.1.self_attn.o_proj.weight", (7, 7), NAN)
        self.inf = at("inf", "lm_head.weight", (40, 9), INF)
        self.minus = at("minus", "lm_head.weight", (40, 9), MINUS_INF)
        self.word = at("word", "model.embed_tokens.weight", (self.token, 3), NAN)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        run_all(globals(), Work(folder))
