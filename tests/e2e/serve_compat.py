#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""fathom serve as the libraries of others know servers: errors they recognise, names they look for."""
import json

from serve_lib import Server, run_all, same

HELLO = [{"role": "user", "content": "Hello"}]
CHAT = {"messages": HELLO, "max_tokens": 3, "temperature": 0}
LONG = [{"role": "user", "content": "a b " * 5000}]


def test_context_overflow_is_recognised(s):
    lead = "This model's maximum context length is 4096 tokens. However, "
    for path, body in (("/v1/chat/completions", {"messages": LONG}), ("/v1/completions", {"prompt": "a b " * 5000}),
                       ("/generate", {"text": "a b " * 5000}), ("/v1/chat/completions", dict(CHAT, max_tokens=5000))):
        r = s.post(path, body, 400)
        same((r["error"]["code"], r["error"]["type"]), ("context_length_exceeded", "invalid_request_error"))
        assert r["error"]["message"].startswith(lead) and "Please reduce the length of the messages" in r["message"], r
        assert s.ask("POST", path, dict(body, stream=True))[0] == 400
    both = s.post("/v1/chat/completions", dict(CHAT, max_tokens=5000), 400)["message"]
    n = s.post("/tokenize", {"messages": HELLO})["count"]
    assert f"you requested {n + 5000} tokens ({n} in the messages, 5000 in the completion)" in both, both
    r = s.post("/v1/messages", {"messages": LONG, "max_tokens": 4}, 400)
    same((r["type"], r["error"]["type"]), ("error", "invalid_request_error"))
    assert r["error"]["message"].startswith("prompt is too long: ") and r["error"]["message"].endswith(" tokens > 4096 maximum"), r
    same(s.post("/v1/chat/completions", dict(CHAT, top_p=7), 400)["error"]["code"], None)


def test_a_cut_tool_call_leaves_no_markup(s):
    whole = "Let me see.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": \"Rome\"}\n```<｜tool▁call▁end｜>"
    for n in range(len("Let me see."), len(whole)):
        r = s.post("/parse_function_call", {"text": whole[:n]})
        cut_mark = n < whole.index("<｜tool▁call▁begin｜>") and n > len("Let me see.")
        if not cut_mark:  # a mark is one token: it is not cut by the end of an answer
            same(r["normal_text"], "Let me see.", whole[:n])
        assert not any("｜" in c["parameters"] for c in r["calls"]), r


def test_errors_are_in_the_dialect_of_the_path(s):
    for path, body in (("/v1/messages/count_tokens", {"messages": "no list"}), ("/v1/messages/count_tokens", {}),
                       ("/v1/messages", {"messages": HELLO, "max_tokens": "many"}), ("/v1/messages", "{")):
        status, _, data = s.ask("POST", path, body)
        r = json.loads(data)
        same((status, r["type"], r["error"]["type"]), (400, "error", "invalid_request_error"), path)
    status, _, data = s.ask("POST", "/v1/messages", b"x" * (33 << 20))
    same((status, json.loads(data)["type"]), (413, "error"))
    status, _, data = s.ask("GET", "/v1/messages")
    same((status, json.loads(data)["type"]), (405, "error"))


def test_fields_that_would_matter_are_refused(s):
    function = {"name": "f", "parameters": {"type": "object"}}
    for field, value in (("functions", [function]), ("function_call", "auto"), ("lora_path", "/adapter"),
                         ("web_search_options", {"x": 1}), ("use_beam_search", True), ("allowed_token_ids", [1]),
                         ("custom_logit_processor", "code"), ("tools", [{"type": "web_search"}])):
        r = s.post("/v1/chat/completions", dict(CHAT, **{field: value}), 400)
        assert field in r["message"] and "not supported" in r["message"], r
        assert r["error"]["param"] in (field, field + "[0].type"), r
    for value in (None, False, [], "", {}):
        s.post("/v1/chat/completions", dict(CHAT, functions=value, lora_path=value))
    s.post("/v1/chat/completions", dict(CHAT, user="me", store=True, metadata={"a": "b"}, service_tier="auto"))
    r = s.post("/v1/messages", {"messages": HELLO, "max_tokens": 4,
                                "tools": [{"type": "web_search_20250305", "name": "web_search"}]}, 400)
    assert "web_search_20250305" in r["error"]["message"], r
    s.post("/v1/messages", {"messages": HELLO, "max_tokens": 4,
                            "tools": [{"type": "custom", "name": "f", "input_schema": {"type": "object"}}]})
    assert "lora_path" in s.post("/generate", {"text": "a", "lora_path": ["x"]}, 400)["message"]


def test_integers_beyond_64_bits(s):
    warm = dict(CHAT, temperature=1, max_tokens=12)
    text = lambda seed: s.post("/v1/chat/completions", dict(warm, seed=seed))["choices"][0]["message"]["reasoning_content"]
    same(text(2 ** 64 - 1), text(2 ** 64 - 1))
    same(text(2 ** 63), text(2 ** 63))
    assert len({text(2 ** 63), text(2 ** 64 - 4096), text(5), text(2 ** 63 - 1)}) == 4
    for field, value in (("seed", 2 ** 65), ("seed", -2 ** 63 - 4096), ("max_tokens", 2 ** 63), ("n", 10 ** 30), ("top_k", 2 ** 70)):
        r = s.post("/v1/chat/completions", dict(CHAT, **{field: value}), 400)
        assert r["message"].startswith(f"request: {field} is ") and r["error"]["param"] == field, r
    s.post("/v1/chat/completions", dict(CHAT, metadata={"account": 123456789012345678901234567890}))
    odd = '{"messages":[{"role":"user","content":"\\"99999999999999999999\\\\"}],"max_tokens":1,"x":[99999999999999999999,1.5]}'
    same(s.ask("POST", "/v1/chat/completions", odd)[0], 200)
    same(s.ask("POST", "/v1/chat/completions", '{"x": 1' + "0" * 400 + "}")[0], 400)


def test_request_ids(s):
    ask = lambda path, body, **h: s.ask("POST", path, body, {k.replace("_", "-"): v for k, v in h.items()})
    for body in (CHAT, dict(CHAT, stream=True), {"messages": "wrong"}):
        status, headers, _ = ask("/v1/chat/completions", body, X_Request_Id="abc-123/7")
        same((headers["x-request-id"], headers["request-id"]), ("abc-123/7", "abc-123/7"), status)
    seen = set()
    for path in ("/health", "/nowhere", "/v1/models"):
        headers = s.ask("GET", path)[1]
        assert headers["x-request-id"].startswith("req_"), headers
        seen.add(headers["x-request-id"])
    same(len(seen), 3)
    for bad in ("", "a b", "x" * 129, "é"):
        assert s.ask("GET", "/health", headers={"x-request-id": bad})[1]["x-request-id"].startswith("req_"), bad
    same(s.ask("GET", "/health", headers={"x-request-id": "x" * 128})[1]["x-request-id"], "x" * 128)


def test_request_ids_are_logged(s):
    with Server("--log-requests") as other:
        other.ask("POST", "/v1/chat/completions", CHAT, {"x-request-id": "mine"})
    lines = [json.loads(x) for x in "".join(other.log).splitlines() if x.startswith("{")]
    same([x["request_id"] for x in lines], ["mine"])


def test_messages_without_content(s):
    for m in ({"role": "user"}, {"role": "user", "content": None}, {"role": "system"}, {"role": "assistant"},
              {"role": "tool", "tool_call_id": "1"}):
        r = s.post("/v1/chat/completions", dict(CHAT, messages=[m] + HELLO), 400)
        same(r["message"], "request: messages[0].content is missing")
    call = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
    s.post("/v1/chat/completions", dict(CHAT, messages=HELLO + [call, {"role": "tool", "tool_call_id": "1", "content": ""}]))
    s.post("/v1/messages", {"messages": [{"role": "user"}], "max_tokens": 3}, 400)


def test_server_info_tells_what_was_chosen(s):
    r = json.loads(s.get("/server_info"))
    want = {"dtype": "bfloat16", "device": "cpu", "load_format": "dummy", "kv_cache_dtype": "bfloat16", "context_length": 4096,
            "max_total_tokens": 65536, "max_running_requests": 256, "reasoning_parser": "deepseek-r1",
            "tool_call_parser": "deepseekv3", "port": s.port}
    same({k: r[k] for k in want}, want)
    assert r["threads"] >= 1 and "auto" not in r.values(), r
    m = json.loads(s.get("/model_info"))
    same((m["reasoning_parser"], m["tool_call_parser"]), ("deepseek-r1", "deepseekv3"))


if __name__ == "__main__":
    with Server() as server:
        run_all(globals(), server)
