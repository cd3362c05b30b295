#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Ollama's endpoints, /version and /openapi.json."""
import json

from serve_lib import Server, run_all, same

HELLO = [{"role": "user", "content": "Hello"}]
FEW = {"temperature": 0, "num_predict": 6}


def lines_of(s, path, body):
    status, headers, data = s.ask("POST", path, body)
    same((status, headers["Content-Type"]), (200, "application/x-ndjson"))
    return [json.loads(x) for x in data.decode().splitlines()]


def test_chat(s):
    ask = {"model": "m", "messages": HELLO, "options": FEW}
    whole = s.post("/api/chat", dict(ask, stream=False))
    same((whole["done"], whole["done_reason"], whole["eval_count"], whole["model"]), (True, "length", 6, "m"))
    assert whole["total_duration"] >= whole["eval_duration"] > 0 and whole["created_at"].endswith("Z")
    lines = lines_of(s, "/api/chat", ask)  # streams unless told not to
    same([x["done"] for x in lines], [False] * (len(lines) - 1) + [True])
    same("".join(x["message"].get("thinking", "") for x in lines), whole["message"]["thinking"])
    chat = s.post("/v1/chat/completions", {"messages": HELLO, "max_tokens": 6, "temperature": 0})
    same(whole["message"]["thinking"], chat["choices"][0]["message"]["reasoning_content"])


def test_generate(s):
    ask = {"model": "m", "prompt": "Hello", "options": FEW, "stream": False}
    r = s.post("/api/generate", ask)
    same((r["done"], r["response"]), (True, ""))
    same(r["thinking"], s.post("/api/chat", {"messages": HELLO, "options": FEW, "stream": False})["message"]["thinking"])
    with_system = s.post("/api/generate", dict(ask, system="Be brief."))
    assert with_system["prompt_eval_count"] > r["prompt_eval_count"]
    raw = s.post("/api/generate", dict(ask, raw=True))
    same(raw["response"], s.post("/v1/completions", {"prompt": "Hello", "max_tokens": 6, "temperature": 0})["choices"][0]["text"])
    lines = lines_of(s, "/api/generate", dict(ask, raw=True, stream=True))
    same("".join(x["response"] for x in lines), raw["response"])


def test_formats_and_tools(s):
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    many = {"temperature": 0, "num_predict": 700}
    raw = s.post("/api/generate", {"prompt": "Hello", "raw": True, "format": schema, "options": many, "stream": False})
    assert isinstance(json.loads(raw["response"])["ok"], bool), raw
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"ok": True}}}]}
    s.post("/api/chat", {"messages": HELLO + [call, {"role": "tool", "content": "yes", "tool_name": "f"}], "tools": [tool],
                         "options": FEW, "stream": False})
    s.post("/api/chat", {"messages": HELLO, "format": "json", "options": FEW, "stream": False})


def test_load(s):
    """A request without a prompt: clients send it to load a model before they need it."""
    for path, key, said, bodies in (("/api/generate", "response", "", ({}, {"prompt": ""}, {"prompt": None, "keep_alive": "5m"}, {"raw": True})),
                                    ("/api/chat", "message", {"role": "assistant", "content": ""}, ({}, {"messages": []}))):
        for body in bodies:
            status, headers, data = s.ask("POST", path, dict(body, model="m"))
            same((status, headers["Content-Type"]), (200, "application/json"))
            r = json.loads(data)
            same((r["model"], r[key], r["done"], r["done_reason"]), ("m", said, True, "load"))
            assert r["created_at"].endswith("Z"), r
    assert "fathom" in s.get("/metrics").decode() and s.post("/api/generate", {"prompt": "Hello", "options": FEW, "stream": False})["done"]


def test_errors(s):
    for path, body, word in (("/api/chat", {"messages": "no"}, "messages"), ("/api/chat", {"messages": HELLO, "options": 5}, "options"),
                             ("/api/chat", {"messages": HELLO, "format": "xml"}, "format"), ("/api/generate", {"prompt": 5}, "content"),
                             ("/api/generate", {"prompt": "a", "format": {"not": {}}}, "request: format: "),
                             ("/api/chat", {"model": 5}, "model"),
                             ("/api/generate", {"prompt": "a", "images": ["x"]}, "images"),
                             ("/api/chat", {"messages": [{"role": "user", "content": "a", "images": ["x"]}]}, "images")):
        status, _, data = s.ask("POST", path, body)
        r = json.loads(data)
        same((status, list(r)), (400, ["error"]))
        assert word in r["error"], r
    same(json.loads(s.ask("GET", "/api/nothing")[2]), {"error": "there is nothing at this path; GET /openapi.json lists the paths"})


def test_models(s):
    for path in ("/api/tags", "/api/ps"):
        m = json.loads(s.get(path))["models"][0]
        same((m["name"], m["model"], len(m["digest"])), ("r1-mini", "r1-mini", 64))
        assert m["size"] > 0
    show = s.post("/api/show", {"model": "r1-mini"})
    same((show["capabilities"], show["model_info"]["deepseek.context_length"]), (["completion", "tools", "thinking"], 4096))
    same(json.loads(s.get("/api/version")), json.loads(s.get("/version")))
    assert json.loads(s.get("/version"))["version"]


def test_openapi(s):
    doc = json.loads(s.get("/openapi.json"))
    assert doc["openapi"].startswith("3.") and len(doc["paths"]) > 30
    for path, methods in doc["paths"].items():
        for method, about in methods.items():
            assert about["summary"] and about["responses"]["200"], path
            if "{" not in path:  # what is listed is there
                assert s.ask(method.upper(), path, "{" if method != "get" else None)[0] not in (404, 405), (method, path)
    same(list(doc["paths"]["/generate"]), ["post", "put"])


if __name__ == "__main__":
    with Server() as server:
        run_all(globals(), server)
