#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Streams that go on when their worker dies or hangs: the client reads what it would have read."""
import http.client
import json
import os
import signal
import sys
import threading
import time

from route_lib import Router, Worker
from serve_lib import run_all, same

N = 100 if os.environ.get("FM_TEST_BRIEF") else 400
HELLO = [{"role": "user", "content": "Hello, tell me a story."}]
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}},
    "required": ["city", "days"]}}}
SCHEMA = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
                                     "required": ["a", "b"]}, "minItems": 30}
GREEDY = {"max_tokens": N, "temperature": 0, "ignore_eos": True}
ASKS = {
    "generate": ("/generate", {"text": "Once upon", "sampling_params": {"max_new_tokens": N, "temperature": 0, "ignore_eos": True}}),
    "generate logprobs": ("/generate", {"text": "Once upon", "return_logprob": True, "logprob_start_len": 0,
                                        "sampling_params": {"max_new_tokens": N, "temperature": 0, "ignore_eos": True}}),
    "chat": ("/v1/chat/completions", {"messages": HELLO, **GREEDY, "stream_options": {"include_usage": True}}),
    "chat seeded": ("/v1/chat/completions", {"messages": HELLO, **GREEDY, "temperature": 1.2, "seed": 7, "n": 3}),
    "chat penalties": ("/v1/chat/completions", {"messages": HELLO, **GREEDY, "frequency_penalty": 0.5, "presence_penalty": 0.5}),
    "chat logprobs": ("/v1/chat/completions", {"messages": HELLO, **GREEDY, "logprobs": True, "top_logprobs": 2}),
    "chat tools": ("/v1/chat/completions", {"messages": HELLO, "max_tokens": N, "temperature": 1, "seed": 3, "tools": [TOOL],
                                            "tool_choice": {"type": "function", "function": {"name": "weather"}}}),
    "chat schema": ("/v1/chat/completions", {"messages": HELLO, "max_tokens": N, "temperature": 1, "seed": 5, "response_format": {
        "type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}),
    "completion": ("/v1/completions", {"prompt": ["Once upon", "The quick"], **GREEDY, "temperature": 0.8, "seed": 11}),
    "completion stop": ("/v1/completions", {"prompt": "Once upon", **GREEDY, "temperature": 1, "seed": 2, "stop": ["zqj", "qzz"]}),
    "messages": ("/v1/messages", {"messages": HELLO, "max_tokens": N, "temperature": 0}),
    "responses": ("/v1/responses", {"input": "Hello", "max_output_tokens": N, "temperature": 0}),
    "messages tools": ("/v1/messages", {"messages": HELLO, "max_tokens": N, "temperature": 0, "tools": [
        {"name": "weather", "input_schema": TOOL["function"]["parameters"]}], "tool_choice": {"type": "tool", "name": "weather"}}),
    "responses tools": ("/v1/responses", {"input": "Hello", "max_output_tokens": N, "temperature": 0, "tools": [
        dict(TOOL["function"], type="function")], "tool_choice": "required"}),
    "ollama generate": ("/api/generate", {"model": "m", "prompt": "Once upon", "options": {"num_predict": N, "temperature": 0}}),
    "ollama": ("/api/chat", {"model": "m", "messages": HELLO, "options": {"num_predict": N, "temperature": 0}}),
}
FIXED = ("object", "model", "type", "role", "status", "sequence_number")
IDS = ("id", "created", "created_at", "item_id", "completed_at", "call_id")
TIMES = ("total_duration", "prompt_eval_duration", "eval_duration", "load_duration", "e2e_latency", "queue_time",
         "decode_throughput", "cached_tokens", "cache_read_input_tokens", "prompt_tokens_details", "input_tokens_details")


def read_stream(port, path, body, at=None, do=None):
    """The events of a stream; `do` is called once after `at` bytes were read."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request("POST", path, json.dumps(dict(body, stream=True)))
    r = c.getresponse()
    same(r.status, 200)
    data = b""
    while True:
        part = r.read1(65536)
        if not part:
            break
        data += part
        if do and len(data) >= at:
            do()
            do = None
    c.close()
    lines = [line for line in data.decode().split("\n") if line]
    return [json.loads(line[6:] if line.startswith("data: ") else line) for line in lines
            if line not in ("data: [DONE]",) and not line.startswith("event:")], data


def strip(v, names):
    if isinstance(v, dict):
        return {k: strip(x, names) for k, x in v.items() if k not in names}
    return [strip(x, names) for x in v] if isinstance(v, list) else v


def joined(events):
    """What a client makes of the events, however they were cut: every text by its place."""
    texts = {}

    def walk(v, place):
        if isinstance(v, dict):
            index = v.get("index", v.get("output_index", ""))
            for k, x in v.items():
                walk(x, f"{place}.{k}[{index}]" if index != "" else f"{place}.{k}")
        elif isinstance(v, list):
            for x in v:
                walk(x, place)
        elif isinstance(v, str):
            texts[place] = texts.get(place, "") + v
    for e in events:
        walk(strip(e, IDS + TIMES + FIXED), e.get("type", ""))
    return texts


def one_name(events):
    for key in ("id", "created"):
        found = {json.dumps(e[key]) for e in events if key in e}
        assert len(found) <= 1, found


    calls = {}
    for e in events:
        if "call_id" in e.get("item", {}):
            same(calls.setdefault(e["output_index"], e["item"]["call_id"]), e["item"]["call_id"], "a call's name")


def last_text(events):
    return strip(events[-1], IDS + TIMES)


def disturb(router, workers, name, at, how):
    path, body = ASKS[name]

    def find():
        """The worker that streams; none, where the answer has ended meanwhile."""
        busy = [t["url"] for t in router.table() if t["load"]]
        return [w for w in workers if w.url() in busy[:1]]

    def hit():
        victim.extend(find())
        for w in victim:
            w.kill(how)
    victim = []
    before = router.count("resumed_streams_total")
    events, data = read_stream(router.port, path, body, at, hit)
    if victim and how == signal.SIGKILL:
        victim[0].again()
    elif victim:
        victim[0].kill(signal.SIGCONT)
    router.wait_up(len(workers))
    return events, data, router.count("resumed_streams_total") - before


def check(router, workers, name, how, shares):
    path, body = ASKS[name]
    want, data = read_stream(router.port, path, body)
    direct, _ = read_stream(workers[0].port, path, body)
    cumulative = path == "/generate"
    if "seed" in json.dumps(body) or '"temperature": 0' in json.dumps(body):
        same(last_text(want) if cumulative else joined(want), last_text(direct) if cumulative else joined(direct), name + " direct")
    for share in shares:
        for _ in range(10):  # on a busy machine the worker may be quicker than this program
            got, _, n = disturb(router, workers, name, max(1, int(len(data) * share)), how)
            if n:
                break
        assert n >= 1, (name, share, "nothing was resumed")
        one_name(got)
        if cumulative:
            same(last_text(got), last_text(want), f"{name} at {share}")
        else:
            same(joined(got), joined(want), f"{name} at {share}")
        if "sequence_number" in got[0]:
            same([e["sequence_number"] for e in got], list(range(len(got))), name)


def test_killed(router, workers):
    for name in ASKS:
        check(router, workers, name, signal.SIGKILL, (0.02, 0.5))
        print("  ", name, flush=True)


def test_killed_inside_a_character(router, workers):
    """A token that is part of a character has a log-probability and no text yet: it is neither lost nor told twice."""
    path, body = ASKS["chat logprobs"]
    want, data = read_stream(router.port, path, body)
    events = data.split(b"\n\n")
    parts = [i for i, e in enumerate(events) if "\ufffd".encode() in e or b"\\ufffd" in e]
    assert parts, "no token is part of a character"
    for i in range(parts[0] - 3, parts[0] + 1):
        at = len(b"\n\n".join(events[:i])) + 2
        got, _, _ = disturb(router, workers, "chat logprobs", at, signal.SIGKILL)
        same(joined(got), joined(want), f"killed behind event {i}")


def test_hangs(router, workers):
    for name in ("chat", "generate", "chat tools"):
        check(router, workers, name, signal.SIGSTOP, (0.3,))


def test_unseeded(router, workers):
    """Sampled without a seed: it cannot be compared, but is whole."""
    body = {"messages": HELLO, **GREEDY, "temperature": 1, "stream_options": {"include_usage": True}}
    ASKS["unseeded"] = ("/v1/chat/completions", body)
    first, _, _ = disturb(router, workers, "unseeded", 50 * N, signal.SIGKILL)
    same(first[-1]["usage"]["completion_tokens"], N)
    second, _, _ = disturb(router, workers, "unseeded", 10**9, signal.SIGKILL)
    assert joined(first) != joined(second), "two unseeded answers are the same"


def test_whole_reply(router, workers):
    """A reply in one piece is simply asked for again."""
    path, body = ASKS["chat"]
    body = {k: v for k, v in body.items() if k != "stream_options"}
    want = router.post(path, body)
    got = []
    t = threading.Thread(target=lambda: got.append(router.post(path, body)))
    t.start()
    while not (busy := [w for w in router.table() if w["load"]]):
        time.sleep(0.001)
    victim = next(w for w in workers if w.url() == busy[0]["url"])
    victim.kill()
    t.join()
    same(strip(got[0], IDS + TIMES), strip(want, IDS + TIMES))
    victim.again()
    router.wait_up(len(workers))


def main():
    workers = [Worker("--deterministic") for _ in range(2)]
    try:
        with Router(workers, *sys.argv[2:]) as router:
            run_all(globals(), router, workers)
    finally:
        for w in workers:
            w.process.kill()


if __name__ == "__main__":
    main()
