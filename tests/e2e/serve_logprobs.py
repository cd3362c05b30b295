#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of the prompt: what generation says of the same position, to the last digit."""
import threading

from serve_lib import Server, run_all, same

TEXT = "It is a truth universally acknowledged, that a single man in possession of a good fortune must be in want of a wife. "


def score(s, ids, start=0, top=3, new=1, **more):
    ask = {"input_ids": ids, "return_logprob": True, "logprob_start_len": start, "top_logprobs_num": top,
           "sampling_params": {"max_new_tokens": new, "temperature": 0}}
    return s.post("/generate", dict(ask, **more))["meta_info"]


def ids_of(s, text):
    return s.post("/tokenize", {"prompt": text})["tokens"]


def test_equals_generation(s):
    """The best tokens at a position are those a prompt that ends there would be answered with."""
    ids = ids_of(s, TEXT)
    m = score(s, ids)
    same([x[1] for x in m["input_token_logprobs"]], ids)
    same((m["input_token_logprobs"][0][0], m["input_top_logprobs"][0]), (None, None))
    same(len(m["input_top_logprobs"]), len(ids))
    for k in range(1, len(ids)):
        short = score(s, ids[:k], start=-1)
        same(short["input_token_logprobs"], [])
        same(short["output_top_logprobs"][0], m["input_top_logprobs"][k], f"position {k}")
    for lp, top in zip(m["input_token_logprobs"][1:], m["input_top_logprobs"][1:]):
        assert all(lp[0] == t[0] for t in top if t[1] == lp[1]) and lp[0] <= top[0][0]


def test_one_wish_per_prompt(s):
    ids = ids_of(s, TEXT)
    ask = {"input_ids": [ids, ids, ids], "sampling_params": {"max_new_tokens": 2, "temperature": 0}, "return_logprob": [False, True, True],
           "top_logprobs_num": [5, 0, 2], "logprob_start_len": [0, -1, 3]}
    last = {e["index"]: e for e in s.stream("/generate", ask)}
    for answers in (s.post("/generate", ask), [last[i] for i in range(3)]):
        none, plain, best = [a["meta_info"] for a in answers]
        assert not any("logprob" in k for k in none), none
        same((len(plain["output_token_logprobs"]), plain["input_token_logprobs"], "output_top_logprobs" in plain), (2, [], False))
        same(([len(t) for t in best["output_top_logprobs"]], len(best["input_token_logprobs"])), ([2, 2], len(ids) - 3))


def test_start_and_cache(s):
    ids = ids_of(s, TEXT * 8)
    whole = score(s, ids)
    same(whole["cached_tokens"], 0)
    for start in (0, 1, 15, 16, 17, 130, len(ids) - 2, len(ids) - 1, len(ids)):
        m = score(s, ids, start)
        same(m["input_token_logprobs"][1:], whole["input_token_logprobs"][start + 1:], f"from {start}")
        same(m["input_top_logprobs"][1:], whole["input_top_logprobs"][start + 1:], f"from {start}")
        same(m["output_token_logprobs"], whole["output_token_logprobs"])
        assert m["cached_tokens"] <= start and (start < 16 or m["cached_tokens"] > 0), (start, m["cached_tokens"])
    r = s.post("/generate", {"input_ids": ids, "return_logprob": True, "logprob_start_len": len(ids) + 1}, 400)
    assert "logprob_start_len" in r["message"], r
    r = s.post("/generate", {"text": ["a b", "c d e"], "return_logprob": True, "logprob_start_len": [1, -1],
                             "sampling_params": {"max_new_tokens": 1}})
    same(r[1]["meta_info"]["input_token_logprobs"], [])
    same(len(r[0]["meta_info"]["input_token_logprobs"]), r[0]["meta_info"]["prompt_tokens"] - 1)


def test_in_company(s):
    ids = ids_of(s, TEXT * 5)
    alone = score(s, ids, new=0)
    same((alone["completion_tokens"], alone["finish_reason"]["type"], alone["output_token_logprobs"]), (0, "length", []))
    got = [None] * 12

    def ask(i):
        got[i] = score(s, ids[i % 3:], new=20 * (i % 2))["input_token_logprobs"]
    crowd = [threading.Thread(target=ask, args=(i,)) for i in range(len(got))]
    for t in crowd:
        t.start()
    for t in crowd:
        t.join()
    for i in (0, 3, 6, 9):
        same(got[i], alone["input_token_logprobs"])


def test_stream(s):
    ask = {"text": TEXT, "return_logprob": True, "logprob_start_len": 2, "sampling_params": {"max_new_tokens": 4, "temperature": 0}}
    whole = s.post("/generate", ask)["meta_info"]
    events = s.stream("/generate", ask)
    same(events[-1]["meta_info"]["input_token_logprobs"], whole["input_token_logprobs"])
    same(events[0]["meta_info"]["input_token_logprobs"], whole["input_token_logprobs"])
    assert len(events) <= 4


def test_echo(s):
    ask = {"prompt": TEXT, "max_tokens": 3, "temperature": 0, "echo": True, "logprobs": 2}
    c = s.post("/v1/completions", ask)["choices"][0]
    lp = c["logprobs"]
    ids = ids_of(s, TEXT)
    same([len(lp[k]) for k in ("tokens", "token_logprobs", "top_logprobs", "text_offset")], [len(ids) + 3] * 4)
    same((lp["token_logprobs"][0], lp["top_logprobs"][0]), (None, None))
    m = score(s, ids, top=2, new=3)
    same(lp["token_logprobs"][1:], [x[0] for x in m["input_token_logprobs"][1:] + m["output_token_logprobs"]])
    same("".join(lp["tokens"]), c["text"])  # a BOS is no part of the text, and so an empty one
    for token, at in zip(lp["tokens"], lp["text_offset"]):
        same(c["text"][at:at + len(token)], token)
    none = s.post("/v1/completions", dict(ask, max_tokens=0))
    same((none["choices"][0]["text"], none["usage"]["completion_tokens"]), (TEXT, 0))
    same(none["choices"][0]["logprobs"]["token_logprobs"], lp["token_logprobs"][:len(ids)])
    by_ids = s.post("/v1/completions", dict(ask, prompt=ids))["choices"][0]
    same((by_ids["text"], by_ids["logprobs"]), (c["text"], lp))
    chunks = [e["choices"][0] for e in s.stream("/v1/completions", ask)]
    same("".join(x["text"] for x in chunks), c["text"])
    same([t for x in chunks for t in x["logprobs"]["token_logprobs"]], lp["token_logprobs"])
    many = s.post("/v1/completions", dict(ask, prompt=["Hello there", TEXT], n=2, max_tokens=0))["choices"]
    same([x["logprobs"]["token_logprobs"] for x in many[2:]], [lp["token_logprobs"][:len(ids)]] * 2)


def test_times(s):
    m = s.post("/generate", {"text": TEXT, "sampling_params": {"max_new_tokens": 8}})["meta_info"]
    assert 0 <= m["queue_time"] <= m["e2e_latency"] and m["decode_throughput"] > 0, m
    before = s.metric("queue_time_seconds_count")
    s.post("/generate", {"text": TEXT, "sampling_params": {"max_new_tokens": 2}})
    same(s.metric("queue_time_seconds_count"), before + 1)


if __name__ == "__main__":
    for args in ([], ["--chunked-prefill-size", "7", "--page-size", "4"], ["--chunked-prefill-size", "-1", "--max-running-requests", "2"]):
        with Server(*args) as server:
            if "7" in args:
                test_in_company(server)
                test_echo(server)
            else:
                run_all(globals(), server)
