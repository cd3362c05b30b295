#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""fathom serve, field by field."""
import json
import os
import shutil
import tempfile

from serve_lib import DATA, MODEL, Server, run_all, same

HELLO = [{"role": "user", "content": "Hello"}]
CHAT = {"messages": HELLO, "max_tokens": 12, "temperature": 0}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "now",
                                            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}


def says(reply, *words):
    """An error in OpenAI's form and in the flat one."""
    same(reply["object"], "error")
    same(reply["error"]["message"], reply["message"])
    for w in words:
        assert w in reply["message"], (w, reply["message"])


def test_chat(s):
    r = s.post("/v1/chat/completions", CHAT)
    c = r["choices"][0]
    same((r["object"], c["finish_reason"], c["message"]["role"]), ("chat.completion", "length", "assistant"))
    same(r["usage"]["completion_tokens"], 12)
    same(r["usage"]["total_tokens"], r["usage"]["prompt_tokens"] + 12)
    assert r["id"].startswith("chatcmpl-") and c["message"]["reasoning_content"] and not c["message"]["content"]
    whole = s.post("/v1/chat/completions", dict(CHAT, separate_reasoning=False))["choices"][0]["message"]
    same((whole["content"], whole["reasoning_content"]), (c["message"]["reasoning_content"], None))
    same(s.post("/v1/chat/completions", dict(CHAT, max_completion_tokens=3))["usage"]["completion_tokens"], 3)


def test_chat_stream(s):
    whole = s.post("/v1/chat/completions", CHAT)
    events = s.stream("/v1/chat/completions", dict(CHAT, stream_options={"include_usage": True}))
    same(events[0]["choices"][0]["delta"], {"role": "assistant", "content": "", "reasoning_content": None})
    same(events[-1]["choices"], [])
    same(events[-1]["usage"]["completion_tokens"], 12)
    same(events[-2]["choices"][0]["finish_reason"], "length")
    text = "".join(e["choices"][0]["delta"].get("reasoning_content") or "" for e in events[:-1])
    same(text, whole["choices"][0]["message"]["reasoning_content"])
    assert len({e["id"] for e in events}) == 1 and all(e["object"] == "chat.completion.chunk" for e in events)
    one = s.stream("/v1/chat/completions", dict(CHAT, stream_reasoning=False))
    same(len([e for e in one if e["choices"][0]["delta"].get("reasoning_content")]), 1)
    every = s.stream("/v1/chat/completions", dict(CHAT, stream_options={"continuous_usage_stats": True}))
    assert all(e["usage"]["prompt_tokens"] == whole["usage"]["prompt_tokens"] for e in every)


def test_usage_in_streams(s):
    prompt = {"prompt": "Hello", "max_tokens": 8, "temperature": 0}
    for path, body in (("/v1/chat/completions", CHAT), ("/v1/completions", prompt)):
        assert not any("usage" in e for e in s.stream(path, body))
        *chunks, last = s.stream(path, dict(body, stream_options={"include_usage": True}))
        assert len(chunks) > 1 and all(e["choices"] and e["usage"] is None for e in chunks)
        same((last["choices"], last["usage"]["completion_tokens"]), ([], body["max_tokens"]))
        every = s.stream(path, dict(body, stream_options={"continuous_usage_stats": True}))
        same([e["usage"]["prompt_tokens"] for e in every], [last["usage"]["prompt_tokens"]] * len(every))


def test_messages_of_every_role(s):
    talk = [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "In verse."},
            {"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
            {"role": "assistant", "content": None,
             "tool_calls": [{"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "rain"}, {"role": "user", "content": "so?"}]
    s.post("/v1/chat/completions", dict(CHAT, messages=talk, tools=[WEATHER]))
    joined = s.post("/v1/tokenize", {"messages": [{"role": "user", "content": "Hello"}]})
    same(s.post("/v1/tokenize", {"messages": [talk[2]]}), joined)
    says(s.post("/v1/chat/completions", dict(CHAT, messages=[{"role": "clown", "content": "x"}]), 400), "clown")


def test_stop_seed_n_bias(s):
    free = s.post("/v1/completions", {"prompt": "Hello", "max_tokens": 16, "temperature": 0})["choices"][0]["text"]
    word = free[6:9]
    r = s.post("/v1/completions", {"prompt": "Hello", "max_tokens": 16, "temperature": 0, "stop": ["zzzzzz", word]})
    c = r["choices"][0]
    same((c["text"], c["finish_reason"], c["matched_stop"]), (free[:free.index(word)], "stop", word))
    streamed = s.stream("/v1/completions", {"prompt": "Hello", "max_tokens": 16, "temperature": 0, "stop": word})
    same("".join(e["choices"][0]["text"] for e in streamed), c["text"])
    same(streamed[-1]["choices"][0]["finish_reason"], "stop")
    kept = s.post("/v1/completions", {"prompt": "Hello", "max_tokens": 16, "temperature": 0, "stop": word, "no_stop_trim": True})
    assert kept["choices"][0]["text"].endswith(word)

    draw = {"prompt": ["Hello", "Bye"], "max_tokens": 8, "seed": 7, "n": 2}
    a, b = s.post("/v1/completions", draw), s.post("/v1/completions", draw)
    same([c["text"] for c in a["choices"]], [c["text"] for c in b["choices"]])
    same([c["index"] for c in a["choices"]], [0, 1, 2, 3])
    assert len({c["text"] for c in a["choices"]}) == 4
    same(a["usage"]["completion_tokens"], 32)
    by_index = {}
    for e in s.stream("/v1/completions", draw):
        c = e["choices"][0]
        by_index[c["index"]] = by_index.get(c["index"], "") + c["text"]
    same([by_index[i] for i in range(4)], [c["text"] for c in a["choices"]])
    other = s.post("/v1/completions", dict(draw, seed=8))
    assert [c["text"] for c in other["choices"]] != [c["text"] for c in a["choices"]]

    forced = s.post("/generate", {"text": "Hello", "sampling_params": {"max_new_tokens": 3, "temperature": 0, "logit_bias": {"100": 100}}})
    same(forced["output_ids"], [100, 100, 100])
    less = s.post("/generate", {"text": "Hello", "sampling_params": {"max_new_tokens": 6, "temperature": 0, "logit_bias": {"100": 12},
                                                                    "frequency_penalty": 2, "presence_penalty": 2}})
    assert less["output_ids"].count(100) < 6
    ended = s.post("/generate", {"text": "Hello", "sampling_params": {"max_new_tokens": 9, "temperature": 0, "logit_bias": {"100": 100},
                                                                     "stop_token_ids": [100], "min_new_tokens": 0}})
    same(ended["meta_info"]["finish_reason"], {"type": "stop", "matched": 100})


def test_completion_echo_and_logprobs(s):
    r = s.post("/v1/completions", {"prompt": "Hello", "max_tokens": 4, "temperature": 0, "echo": True})
    assert r["choices"][0]["text"].startswith("Hello")
    r = s.post("/v1/completions", {"prompt": "Hello", "max_tokens": 4, "temperature": 0, "logprobs": 3})
    lp = r["choices"][0]["logprobs"]
    same([len(lp[k]) for k in ("tokens", "token_logprobs", "top_logprobs", "text_offset")], [4, 4, 4, 4])
    same("".join(lp["tokens"]), r["choices"][0]["text"])
    for token, own, top in zip(lp["tokens"], lp["token_logprobs"], lp["top_logprobs"]):
        same(top[token], own)
        same(max(top.values()), own)
    r = s.post("/v1/chat/completions", dict(CHAT, logprobs=True, top_logprobs=2))
    content = r["choices"][0]["logprobs"]["content"]
    same(len(content), 12)
    assert all(len(c["top_logprobs"]) == 2 and c["top_logprobs"][0]["logprob"] == c["logprob"] for c in content)
    same(b"".join(bytes(c["bytes"]) for c in content).decode("utf-8", "replace"),
         r["choices"][0]["message"]["reasoning_content"])
    streamed = s.stream("/v1/chat/completions", dict(CHAT, logprobs=True))
    same(sum(len((e["choices"][0]["logprobs"] or {"content": []})["content"]) for e in streamed), 12)
    ids = s.post("/v1/tokenize", {"prompt": "Hello"})["tokens"]
    same(s.post("/v1/completions", {"prompt": ids, "max_tokens": 4, "temperature": 0})["choices"][0]["text"],
         "".join(lp["tokens"]))


def test_generate(s):
    ask = {"text": "Hello", "sampling_params": {"max_new_tokens": 5, "temperature": 0}}
    r = s.post("/generate", dict(ask, return_logprob=True, top_logprobs_num=2, rid="mine"))
    same((r["meta_info"]["id"], r["meta_info"]["finish_reason"]), ("mine", {"type": "length", "length": 5}))
    same([x[1] for x in r["meta_info"]["output_token_logprobs"]], r["output_ids"])
    same([len(t) for t in r["meta_info"]["output_top_logprobs"]], [2] * 5)
    events = s.stream("/generate", ask)
    assert 1 <= len(events) <= 5, len(events)
    same((events[-1]["text"], events[-1]["output_ids"]), (r["text"], r["output_ids"]))
    for shorter, longer in zip(events, events[1:]):
        assert longer["text"].startswith(shorter["text"])
    ids = s.post("/tokenize", {"prompt": "Hello"})["tokens"]
    many = s.post("/generate", {"input_ids": [ids, ids[:1]], "sampling_params": [{"max_new_tokens": 5, "temperature": 0},
                                                                               {"max_new_tokens": 2, "temperature": 0}]})
    same([len(m["output_ids"]) for m in many], [5, 2])
    same(many[0]["text"], r["text"])
    same(s.ask("PUT", "/generate", ask)[0], 200)
    empty = s.post("/generate", {"text": "Hello", "sampling_params": {"max_new_tokens": 0}})
    same((empty["text"], empty["output_ids"], empty["meta_info"]["finish_reason"]["type"]), ("", [], "length"))


def test_cached_tokens(s):
    long = {"messages": [{"role": "user", "content": "word " * 100}], "max_tokens": 2, "temperature": 0}
    first, again = (s.post("/v1/chat/completions", long) for _ in range(2))
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 80, again["usage"]
    same(again["choices"][0]["message"], first["choices"][0]["message"])
    same(s.ask("POST", "/flush_cache")[0], 200)
    same(s.post("/v1/chat/completions", long)["usage"]["prompt_tokens_details"]["cached_tokens"], 0)


def test_tools(s):
    ask = dict(CHAT, tools=[WEATHER])
    named = {"type": "function", "function": {"name": "weather"}}
    c = s.post("/v1/chat/completions", dict(ask, tool_choice=named))["choices"][0]
    call = c["message"]["tool_calls"][0]
    same((call["function"]["name"], call["type"], len(call["id"])), ("weather", "function", 29))
    assert call["function"]["arguments"] and c["finish_reason"] == "length"
    deltas = [e["choices"][0]["delta"] for e in s.stream("/v1/chat/completions", dict(ask, tool_choice=named))]
    parts = [d["tool_calls"][0] for d in deltas if d.get("tool_calls")]
    same(parts[0]["function"], {"name": "weather", "arguments": ""})
    same("".join(p["function"]["arguments"] for p in parts), call["function"]["arguments"])
    end = s.post("/v1/tokenize", {"prompt": "<｜tool▁call▁end｜>", "add_special_tokens": False})["tokens"][0]
    brace = s.post("/v1/tokenize", {"prompt": "}", "add_special_tokens": False})["tokens"][0]
    closed = s.post("/v1/chat/completions", dict(ask, tool_choice=named, max_tokens=60, logit_bias={str(end): 100, str(brace): 100},
                                                 stop_token_ids=[end]))
    same(closed["choices"][0]["finish_reason"], "tool_calls")
    assert "tool_calls" in s.post("/v1/chat/completions", dict(ask, tool_choice="none"))["choices"][0]["message"]
    says(s.post("/v1/chat/completions", dict(ask, tool_choice={"type": "function", "function": {"name": "x"}}), 400), "x")
    says(s.post("/v1/chat/completions", dict(CHAT, tool_choice="required"), 400), "tool_choice")
    text = "Hm <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": \"Rome\"}\n```<｜tool▁call▁end｜>"
    same(s.post("/parse_function_call", {"text": text}),
         {"normal_text": "Hm", "calls": [{"tool_index": 0, "name": "weather", "parameters": "{\"city\": \"Rome\"}"}]})
    bare = s.post("/parse_function_call", {"text": text.replace('{"city": "Rome"}', "") * 2})
    same([c["parameters"] for c in bare["calls"]], ["", ""])
    same(s.post("/separate_reasoning", {"text": "a</think>b"}), {"reasoning_text": "a", "text": "b"})


RESULT = HELLO + [{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
                  {"role": "tool", "tool_call_id": "1", "content": "42"}]
OFF = [{"reasoning_effort": "none"}, {"chat_template_kwargs": {"thinking": False}}]


def test_reasoning_only_where_the_prompt_opens_it(s):
    def parts(messages, **more):
        m = s.post("/v1/chat/completions", dict(CHAT, messages=messages, **more))["choices"][0]["message"]
        return bool(m["content"]), bool(m["reasoning_content"])

    begun = RESULT + [{"role": "assistant", "content": "The", "prefix": True}]
    closed = HELLO + [{"role": "assistant", "content": "thought</think>The", "prefix": True}]
    for more in [{}] + OFF:
        same(parts(HELLO, **more), (False, True))
        for messages in (RESULT, begun, closed):
            same(parts(messages, **more), (True, False), (messages[-1], more))
    blocks = HELLO + [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
                      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "42"}]}]
    ask = {"max_tokens": 6, "temperature": 0, "messages": blocks}
    for more in ({}, {"thinking": {"type": "disabled"}}):
        same([b["type"] for b in s.post("/v1/messages", dict(ask, **more))["content"]], ["text"])


def test_reasoning_between_special_tags(s):
    """It makes no difference whether the tokenizer calls the tags special."""
    end = s.post("/v1/tokenize", {"prompt": "</think>", "add_special_tokens": False})["tokens"]
    with tempfile.TemporaryDirectory() as d:
        shutil.copytree(os.path.join(DATA, "tokenizer"), d, dirs_exist_ok=True)
        path = os.path.join(d, "tokenizer.json")
        with open(path) as f:
            tokenizer = json.load(f)
        for token in tokenizer["added_tokens"]:
            token["special"] = token["special"] or "think>" in token["content"]
        with open(path, "w") as f:
            json.dump(tokenizer, f)
        with Server(model=MODEL + ["--tokenizer-path", d, "--max-total-tokens", "65536"]) as special:
            both = 0
            for seed in range(20):
                ask = {"messages": HELLO, "max_tokens": 12, "seed": seed, "logit_bias": {str(end[0]): 7}}
                want = s.post("/v1/chat/completions", ask)["choices"][0]["message"]
                same(special.post("/v1/chat/completions", ask)["choices"][0]["message"], want)
                both += bool(want["content"] and want["reasoning_content"])
            assert both > 3, both
            same(special.post("/v1/detokenize", {"tokens": end}), {"text": ""})


def test_messages(s):
    ask = {"model": "m", "max_tokens": 6, "temperature": 0, "messages": HELLO, "system": "Be brief."}
    r = s.post("/v1/messages", ask)
    same((r["type"], r["role"], r["stop_reason"], r["usage"]["output_tokens"]), ("message", "assistant", "max_tokens", 6))
    events = s.stream("/v1/messages", ask)
    same([e["type"] for e in events if "delta" not in e["type"]],
         ["message_start", "content_block_start", "content_block_stop", "message_stop"])
    text = "".join(e["delta"]["thinking"] for e in events if e["type"] == "content_block_delta")
    same(text, r["content"][0]["thinking"])
    tool = {"name": "weather", "input_schema": {"type": "object"}}
    r = s.post("/v1/messages", dict(ask, tools=[tool], tool_choice={"type": "tool", "name": "weather"}))
    same((r["content"][0]["type"], r["content"][0]["name"]), ("tool_use", "weather"))
    blocks = [{"role": "user", "content": [{"type": "text", "text": "go"}]},
              {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "weather", "input": {"city": "Rome"}}]},
              {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "rain"}]}]}]
    s.post("/v1/messages", dict(ask, tools=[tool], messages=blocks))
    n = s.post("/v1/messages/count_tokens", {"model": "m", "messages": HELLO})["input_tokens"]
    same(n, s.post("/v1/tokenize", {"messages": HELLO})["count"])
    bad = s.post("/v1/messages", dict(ask, messages=[{"role": "user", "content": [{"type": "image"}]}]), 400)
    same((bad["type"], bad["error"]["type"]), ("error", "invalid_request_error"))


def test_tokenize(s):
    text = "Grüße, 世界 \U0001f600 <think>"
    t = s.post("/v1/tokenize", {"prompt": text, "add_special_tokens": False})
    same(len(t["tokens"]), t["count"])
    same(s.post("/v1/detokenize", {"tokens": t["tokens"]}), {"text": text})
    same(s.post("/detokenize", {"tokens": [t["tokens"], []]}), {"text": [text, ""]})
    same(s.post("/tokenize", {"prompt": ["a", "b"]})["count"], [s.post("/tokenize", {"prompt": "a"})["count"]] * 2)
    same(s.post("/detokenize", {"tokens": [4096], "skip_special_tokens": False}), {"text": "<｜User｜>"})


def test_info(s):
    same(s.get("/health"), b"")
    same(s.get("/health_generate"), b"")
    same(json.loads(s.get("/v1/models"))["data"][0]["id"], "r1-mini")
    same(json.loads(s.get("/v1/models/r1-mini"))["max_model_len"], 4096)
    same(json.loads(s.ask("GET", "/v1/models/no")[2])["error"]["code"], "model_not_found")
    info = json.loads(s.get("/server_info"))
    same((info["max_total_num_tokens"], info["schedule_policy"], info["page_size"]), (65536, "fcfs", 16))
    assert "last_gen_throughput" in info["internal_states"][0] and "api_key" not in info
    same(json.loads(s.get("/model_info"))["chat_template"], "r1")
    same(json.loads(s.get("/v1/loads"))["loads"][0]["num_running_reqs"], 0)
    assert b"<html" in s.get("/")[:2000].lower()


def test_metrics(s):
    before = s.metric("generation_tokens_total"), s.metric("num_requests_total"), s.metric("time_to_first_token_seconds_count")
    s.post("/v1/chat/completions", CHAT)
    after = s.metric("generation_tokens_total"), s.metric("num_requests_total"), s.metric("time_to_first_token_seconds_count")
    same([b - a for a, b in zip(before, after)], [12, 1, 1])
    for line in s.get("/metrics").decode().splitlines():
        assert line.startswith("# ") or line.startswith("fathom:"), line
    for name in ("num_running_reqs", "num_queue_reqs", "token_usage", "cache_hit_rate", "gen_throughput"):
        s.metric(name)


def test_errors(s):
    chat = "/v1/chat/completions"
    for body, word in [
        (dict(CHAT, temperature="hot"), "temperature"), (dict(CHAT, temperature=-1), "temperature"),
        (dict(CHAT, top_p=0), "top_p"), (dict(CHAT, n=0), "n"), (dict(CHAT, max_tokens=-5), "max_tokens"),
        (dict(CHAT, stop=5), "stop"), (dict(CHAT, stop=[5]), "stop"), (dict(CHAT, logit_bias={"a": 1}), "logit_bias"),
        (dict(CHAT, logit_bias={"99999": 1}), "logit_bias"), (dict(CHAT, top_logprobs=3), "logprobs"),
        (dict(CHAT, logprobs=True, top_logprobs=99), "top_logprobs"), (dict(CHAT, stream="yes"), "stream"),
        (dict(CHAT, messages=[]), "messages"), (dict(CHAT, messages="x"), "messages"), (dict(CHAT, messages=[3]), "messages[0]"),
        (dict(CHAT, max_tokens=5000), "context"), (dict(CHAT, messages=[{"role": "user", "content": "a b " * 5000}]), "context"),
        (dict(CHAT, response_format={"type": "xml"}), "response_format"), (dict(CHAT, regex="("), "regex"),
        (dict(CHAT, messages=[{"role": "user", "content": "a\0b"}]), "NUL"), (dict(CHAT, stop="\0"), "NUL"),
        (dict(CHAT, tools=[{}]), "tools[0]"), (dict(CHAT, seed=1.5), "seed"), (dict(CHAT, ignore_eos=1), "ignore_eos"),
        (dict(CHAT, messages=[{"role": "user", "content": [{"type": "image_url"}]}]), "text"),
    ]:
        says(s.post(chat, body, 400), word)
    for body in (b"", b"{", b"[1]", b"null", b'{"messages": "\xff"}', b'{"a": ' * 300 + b"1" + b"}" * 300, b'"\\ud800"'):
        same(s.ask("POST", chat, body)[0], 400, body[:40])
    for body, word in [({}, "input_ids"), ({"text": "a", "input_ids": [1]}, "exactly one"), ({"text": 5}, "text"),
                       ({"input_ids": [99999]}, "vocabulary"), ({"input_ids": []}, "empty"), ({"input_ids": ["x"]}, "input_ids"),
                       ({"text": "a", "sampling_params": 3}, "sampling_params"), ({"text": []}, "no prompt")]:
        says(s.post("/generate", body, 400), word)
    same(s.post(chat, dict(CHAT, temperature="hot"), 400)["error"]["param"], "temperature")
    same(s.ask("GET", "/nowhere")[0], 404)
    status, _, data = s.ask("DELETE", "/v1/models")
    same((status, json.loads(data)["error"]["message"]), (405, "this path takes GET, HEAD"))
    s.post(chat, dict(CHAT, unheard_of={"a": [1]}, user="me", logit_bias=None, stop=None, temperature=None))


def check_drafts():
    """Drafts of the MTP layer are told per request, and for the server as a whole."""
    box = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/fathom-tiny")
    with Server("--speculative-algorithm", "NEXTN", "--disable-speculative-adaptive",
                model=["--model-path", box]) as s:
        r = s.post("/generate", {"text": "What is 47 + 85?",
                                 "sampling_params": {"max_new_tokens": 40, "temperature": 0, "ignore_eos": True}})
        told = r["meta_info"]
        same(round(told["spec_accept_length"] * told["spec_verify_ct"]), told["completion_tokens"] - 1)
        assert told["spec_accept_length"] > 1.2, told
        right, tried = told["spec_num_correct_drafts"], told["spec_num_proposed_drafts"]
        same(right + told["spec_verify_ct"], told["completion_tokens"] - 1)
        assert told["spec_verify_ct"] < tried <= 3 * told["spec_verify_ct"], told
        assert abs(told["spec_accept_rate"] - right / tried) < 1e-4, told
        if s.is_router:
            return  # what the server says as a whole is then one worker's, not always that of the request
        info = json.loads(s.get("/server_info"))
        same((info["speculative_num_steps"], info["speculative_num_draft_tokens"]), (3, 4))
        same(info["speculative_adaptive"], False)
        state = info["internal_states"][0]
        assert abs(state["avg_spec_accept_length"] - told["spec_accept_length"]) < 0.1, (state, told)
        assert abs(state["spec_accept_rate"] - (told["spec_accept_length"] - 1) / 3) < 0.15, (state, told)
        assert s.metric("spec_accept_length") > 1.2
    with Server("--speculative-algorithm", "auto", model=["--model-path", box]) as s:
        same(json.loads(s.get("/server_info"))["speculative_adaptive"], True)  # the default of speculation


if __name__ == "__main__":
    with Server() as server:
        run_all(globals(), server)
    check_drafts()
