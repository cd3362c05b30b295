#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Constrained output: a model that knows nothing, drawn at random, still writes what its schema asks for."""
import concurrent.futures
import json
import random
import re
from math import inf

from serve_lib import Server, run_all, same

HELLO = [{"role": "user", "content": "Hello"}]


def is_valid(v, schema, root):
    """The part of JSON Schema that random_schema() uses."""
    if schema is True:
        return True
    if "$ref" in schema:
        at = root
        for name in schema["$ref"].split("/")[1:]:
            at = at[name]
        return is_valid(v, at, root)
    if "anyOf" in schema:
        return any(is_valid(v, s, root) for s in schema["anyOf"])
    if "enum" in schema:
        return any(type(v) is type(e) and v == e for e in schema["enum"])
    if "const" in schema:
        return v == schema["const"]
    kind = schema.get("type")
    if kind == "object":
        props = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        return isinstance(v, dict) and all(r in v for r in schema.get("required", [])) and all(
            is_valid(x, props[k], root) if k in props else more is not False and is_valid(x, more, root) for k, x in v.items())
    if kind == "array":
        return (isinstance(v, list) and schema.get("minItems", 0) <= len(v) <= schema.get("maxItems", 10**9)
                and not (schema.get("uniqueItems") and any(v.count(x) > 1 for x in v))
                and all(is_valid(x, schema.get("items", True), root) for x in v))
    if kind == "string":
        return (isinstance(v, str) and schema.get("minLength", 0) <= len(v) <= schema.get("maxLength", 10**9)
                and ("pattern" not in schema or re.search(schema["pattern"], v) is not None))
    if kind in ("integer", "number"):
        ok = isinstance(v, int) if kind == "integer" else isinstance(v, (int, float))
        unit = schema.get("multipleOf", 0)
        return (ok and not isinstance(v, bool) and schema.get("minimum", v) <= v <= schema.get("maximum", v)
                and schema.get("exclusiveMinimum", -inf) < v < schema.get("exclusiveMaximum", inf) and (not unit or v % unit == 0))
    if kind == "boolean":
        return isinstance(v, bool)
    return v is None if kind == "null" else True


def random_schema(dice, depth=0):
    leaf = [lambda: {"type": "string", "maxLength": dice.randrange(12)},
            lambda: {"type": "string", "minLength": 3, "maxLength": dice.randrange(3, 9)},
            lambda: {"type": "string", "pattern": dice.choice(["^[a-z]{2,5}$", "^\\d{3}-\\w$", "^(yes|no)$", "^[^a-z\"]{1,3}$"])},
            lambda: {"type": "integer"}, lambda: {"type": "number"}, lambda: {"type": "boolean"}, lambda: {"type": "null"},
            lambda: {"type": "integer", "minimum": dice.randrange(-50, 20), "maximum": dice.randrange(20, 2000)},
            lambda: {"type": "number", "minimum": 0, "maximum": dice.randrange(1, 40)},
            lambda: {"enum": dice.sample(["a", "b\"c", "Gr\u00fc\u00dfe", 1, 22, None, True, [1, 2], {"k": "v"}], 3)},
            lambda: {"const": dice.choice(["x", 7, {"deep": [1]}])},
            lambda: {"type": "number", "exclusiveMinimum": dice.choice([-2.5, -0.125, 0]), "exclusiveMaximum": dice.choice([0.5, 3.75, 12])},
            lambda: {"type": dice.choice(["integer", "number"]), "multipleOf": dice.choice([0.25, 3, 0.5]), "minimum": -9.5, "maximum": 40},
            lambda: {"type": "string", "pattern": "^[a-c]+-[a-c]+$", "minLength": 4, "maxLength": dice.randrange(5, 9)},
            lambda: {"type": "array", "items": {"type": dice.choice(["string", "integer"])}, "uniqueItems": True, "maxItems": 3},
            lambda: {"type": "array", "items": {"enum": ["p", "q", 1, None]}, "uniqueItems": True, "minItems": 2},
            lambda: {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "boolean"}, "n": {"type": "number"}},
                                                "required": ["k"], "additionalProperties": False}, "uniqueItems": True, "maxItems": 4},
            lambda: {"type": "array", "items": {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"enum": ["p", 2]}, "maxItems": 2}]},
                     "uniqueItems": True, "minItems": 2, "maxItems": 4}]
    if depth > 2 or dice.random() < 0.25:
        return dice.choice(leaf)()
    kind = dice.randrange(4)
    if kind == 0:
        return {"type": "array", "items": random_schema(dice, depth + 1), "minItems": dice.randrange(2), "maxItems": dice.randrange(1, 4)}
    if kind == 1:
        return {"anyOf": [random_schema(dice, depth + 1) for _ in range(dice.randrange(1, 4))]}
    names = dice.sample(["id", "name", "a b", "\u00e4\"q", "nested", "list"], dice.randrange(1, 5))
    return {"type": "object", "properties": {n: random_schema(dice, depth + 1) for n in names},
            "required": [n for n in names if dice.random() < 0.6], "additionalProperties": False}


def complete(s, schema, seed, **more):
    ask = {"prompt": f"Write {seed}:", "max_tokens": 400, "temperature": 1, "seed": seed,
           "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
    return s.post("/v1/completions", dict(ask, **more))["choices"][0]


def test_answer_to_a_tool_result(s):
    """The prompt opens no reasoning there, so the form begins at once, whatever was said about thinking."""
    talk = HELLO + [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
                    {"role": "tool", "tool_call_id": "1", "content": "42"}]
    for more in ({}, {"reasoning_effort": "none"}, {"chat_template_kwargs": {"thinking": False}}):
        m = s.post("/v1/chat/completions", dict(more, messages=talk, max_tokens=8, seed=1, regex="[ab]{20}"))["choices"][0]["message"]
        assert not m["reasoning_content"] and re.fullmatch("[ab]+", m["content"]), m


def test_names_of_vllm(s):
    ask = {"prompt": "x", "max_tokens": 60, "seed": 3}
    text = lambda **form: s.post("/v1/completions", dict(ask, **form))["choices"][0]["text"]
    words = ["yes (really)", "a|b", "c\\d [1]"]
    for form in ({"guided_choice": words}, {"structured_outputs": {"choice": words}}):
        assert text(**form) in words
    for form in ({"guided_regex": "[ab]{7}"}, {"structured_outputs": {"regex": "[ab]{7}"}}):
        assert re.fullmatch("[ab]{7}", text(**form))
    for form in ({"guided_json": {"enum": [5, "x"]}}, {"structured_outputs": {"json": '{"enum": [5, "x"]}'}}):
        assert json.loads(text(**form)) in (5, "x")
    for form, word in (({"guided_choice": []}, "guided_choice"), ({"guided_choice": ["a", 5]}, "guided_choice"),
                       ({"structured_outputs": {"grammar": "x"}}, "structured_outputs"), ({"guided_grammar": "x"}, "guided_grammar"),
                       ({"structured_outputs": {"disable_any_whitespace": True}}, "structured_outputs"),
                       ({"structured_outputs": {"json": {}, "disable_any_whitespace": 1}}, "structured_outputs"),
                       ({"guided_regex": "a", "regex": "b"}, "exclude")):
        assert word in s.post("/v1/completions", dict(ask, **form), 400)["error"]["message"]


def test_ebnf(s):
    """XGrammar's and llama.cpp's grammars by all their names; recursion closes what it opened."""
    grammar = 'root ::= "(" root? ")" | word  # nested\nword ::= [ab]{2}'
    ask = {"prompt": "x", "max_tokens": 40, "seed": 3}
    for form in ({"ebnf": grammar}, {"guided_grammar": grammar}, {"grammar": grammar}, {"structured_outputs": {"grammar": grammar}}):
        for seed in range(4):
            c = s.post("/v1/completions", dict(ask, seed=seed, **form))["choices"][0]
            same(c["finish_reason"], "stop")
            depth = c["text"].count("(")
            assert re.fullmatch(r"\({%d}([ab]{2})?\){%d}" % (depth, depth), c["text"]), c["text"]
    r = s.post("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 40, "ebnf": 'root ::= "yes" | "no"'}})
    assert r["text"] in ("yes", "no"), r


def test_white_space(s):
    """Without a wish, one separator space or indentation; with one, as it says."""
    schema = {"type": "array", "items": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 2, "maxItems": 2}, "minItems": 4, "maxItems": 4}
    text = lambda seed, **form: s.post("/v1/completions", dict({"prompt": "x", "max_tokens": 400, "seed": seed}, **form))["choices"][0]["text"]
    for seed in range(3):
        free = text(seed, json_schema=schema)
        assert not re.search(r"[ \t]\n|\n\n|[^\n ] {2}|^\s|\s$", free), free
        bare = text(seed, structured_outputs={"json": schema, "disable_any_whitespace": True})
        same(bare, json.dumps(json.loads(bare), separators=(",", ":")))
        for name in ("whitespace_pattern", "guided_whitespace_pattern"):
            wide = text(seed, json_schema=schema, **{name: " {2}"})
            assert wide.count("  ") == wide.count(" ") / 2 > 12 and json.loads(wide), wide


def test_random_schemas(s):
    dice = random.Random(7)
    schemas = [random_schema(dice) for _ in range(150)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: complete(s, schemas[i], i), range(len(schemas))))
    ended = 0
    for schema, c in zip(schemas, answers):
        if c["finish_reason"] != "stop":
            same(c["finish_reason"], "length")
            continue
        ended += 1
        assert is_valid(json.loads(c["text"]), schema, schema), (schema, c["text"])
    assert ended > 0.9 * len(schemas), ended


def test_recursion(s):
    tree = {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
        "v": {"type": "integer", "minimum": 0, "maximum": 9}, "kids": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/node"}}},
        "required": ["v", "kids"], "additionalProperties": False}}}
    done = [c for c in (complete(s, tree, i, max_tokens=250) for i in range(6)) if c["finish_reason"] == "stop"]
    assert done
    for c in done:
        assert is_valid(json.loads(c["text"]), tree, tree), c["text"]


def test_json_object_and_native_fields(s):
    """Whole JSON is seldom short when it is drawn at random; a bias makes it end."""
    ids = {ch: s.post("/tokenize", {"prompt": ch, "add_special_tokens": False})["tokens"][0] for ch in '"}]'}
    bias = {str(i): 9 for i in ids.values()}
    for seed in range(8):
        c = s.post("/v1/completions", {"prompt": "x", "max_tokens": 500, "seed": seed, "logit_bias": bias,
                                       "response_format": {"type": "json_object"}})["choices"][0]
        same(c["finish_reason"], "stop")
        assert isinstance(json.loads(c["text"]), dict)
    r = s.post("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 60, "regex": "(ab|cd){2,3}-\\d\\d"}})
    assert re.fullmatch("(ab|cd){2,3}-\\d\\d", r["text"]), r["text"]
    same(r["meta_info"]["finish_reason"]["type"], "stop")
    for schema in ('{"enum": ["yes", "no"]}', {"enum": ["yes", "no"]}):
        r = s.post("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 60, "json_schema": schema, "ignore_eos": True}})
        assert r["text"] in ('"yes"', '"no"'), r["text"]
    two = s.post("/generate", {"text": ["x", "y"], "sampling_params": [{"max_new_tokens": 9, "regex": "a{5}"}, {"max_new_tokens": 9}]})
    same(two[0]["text"], "aaaaa")
    n = s.post("/v1/completions", {"prompt": "x", "max_tokens": 60, "n": 4, "regex": "[a-f]{8}"})["choices"]
    assert len({c["text"] for c in n}) == 4 and all(re.fullmatch("[a-f]{8}", c["text"]) for c in n), n
    streamed = "".join(e["choices"][0]["text"] for e in s.stream("/v1/completions", {"prompt": "x", "max_tokens": 60, "regex": "[a-f]{8}"}))
    assert re.fullmatch("[a-f]{8}", streamed)


def test_cut_by_length_is_a_beginning(s):
    c = complete(s, {"type": "array", "items": {"const": "word"}, "minItems": 100}, 1, max_tokens=10)
    same(c["finish_reason"], "length")
    assert re.match('\\[\\s*("word"|$|"w)', c["text"]), c["text"]


def test_greedy_and_logprobs(s):
    """The best token of those that may come; a free neighbour is not touched."""
    free = {"prompt": "Hello", "max_tokens": 12, "temperature": 0}
    alone = s.post("/v1/completions", free)["choices"][0]["text"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        forms = [pool.submit(s.post, "/v1/completions", dict(free, regex="\\d{12}", logprobs=3)) for _ in range(4)]
        others = [pool.submit(s.post, "/v1/completions", free) for _ in range(4)]
    same({o.result()["choices"][0]["text"] for o in others}, {alone})
    texts = {f.result()["choices"][0]["text"] for f in forms}
    same(len(texts), 1)
    for f in forms:
        lp = f.result()["choices"][0]["logprobs"]
        for token, own, top in zip(lp["tokens"], lp["token_logprobs"], lp["top_logprobs"]):
            same(max(top.values()), own)
            assert all(re.fullmatch("\\d+", t) for t in top), top


def test_thinking_comes_first(s):
    """R1's answers begin inside reasoning: the form begins behind </think>."""
    end = s.post("/tokenize", {"prompt": "</think>", "add_special_tokens": False})["tokens"]
    same(len(end), 1)
    ask = {"messages": HELLO, "max_tokens": 80, "temperature": 1, "seed": 3, "regex": "[0-9]{6}"}
    m = s.post("/v1/chat/completions", dict(ask, logit_bias={str(end[0]): 7}))["choices"][0]
    same(m["finish_reason"], "stop")
    assert re.fullmatch("[0-9]{6}", m["message"]["content"]), m
    assert m["message"]["reasoning_content"]
    whole = s.post("/v1/chat/completions", dict(ask, logit_bias={str(end[0]): 7}, separate_reasoning=False))["choices"][0]["message"]
    assert re.search("[0-9]{6}$", whole["content"]), whole
    asked = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer", "maximum": 5, "minimum": 5}}}
    m = s.post("/v1/chat/completions", dict(ask, regex=None, response_format=asked, logit_bias={str(end[0]): 7}))["choices"][0]
    same(json.loads(m["message"]["content"]), 5)


def test_forced_calls(s):
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {
        "city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["city"],
        "additionalProperties": False}}} for name in ("weather", "pack")]
    ask = {"messages": HELLO, "max_tokens": 200, "temperature": 1, "tools": tools, "parallel_tool_calls": False}
    named = {"type": "function", "function": {"name": "pack"}}
    for seed in range(6):
        for choice in ("required", named):
            c = s.post("/v1/chat/completions", dict(ask, tool_choice=choice, seed=seed))["choices"][0]
            same(c["finish_reason"], "tool_calls")
            same(len(c["message"]["tool_calls"]), 1)
            call = c["message"]["tool_calls"][0]["function"]
            assert call["name"] in (("weather", "pack") if choice == "required" else ("pack",)), call
            assert is_valid(json.loads(call["arguments"]), tools[0]["function"]["parameters"], None), call
    odd = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "minProperties": 2}}}]
    s.post("/v1/chat/completions", dict(ask, tools=odd, tool_choice="required", max_tokens=4))
    odd[0]["function"]["strict"] = True
    r = s.post("/v1/chat/completions", dict(ask, tools=odd, tool_choice="required"), 400)
    assert "minProperties" in r["message"], r
    c = s.post("/v1/chat/completions", dict(ask, tool_choice="required", response_format={"type": "json_object"}))["choices"][0]
    assert c["message"]["tool_calls"], c  # the format is that of text alone
    r = s.post("/v1/chat/completions", dict(ask, tool_choice="required", regex="a+"), 400)
    assert "regex" in r["message"] and "tool_choice" in r["message"], r
    tool = {"name": "weather", "input_schema": tools[0]["function"]["parameters"]}
    r = s.post("/v1/messages", {"model": "m", "max_tokens": 200, "messages": HELLO, "tools": [tool], "tool_choice": {"type": "any"}})
    assert all(is_valid(b["input"], tool["input_schema"], None) for b in r["content"][:-1] if b["type"] == "tool_use"), r


def test_errors(s):
    for fields, word in [
            ({"response_format": {"type": "json_schema"}}, "json_schema.schema"), ({"response_format": {"type": "xml"}}, "xml"),
            ({"response_format": "json"}, "response_format"), ({"regex": "("}, "regex"), ({"regex": 5}, "regex"),
            ({"regex": "(a)\\1"}, "escape"), ({"ebnf": "root ::= x"}, "line 1: there is no rule"), ({"json_schema": "{"}, "JSON"),
            ({"ebnf": ["x"]}, "ebnf"), ({"grammar": "root ::= \"a"}, "grammar"), ({"ebnf": "root ::= \"a\"", "regex": "a"}, "exclude"),
            ({"structural_tag": "x"}, "structural_tag"), ({"json_schema": {}, "whitespace_pattern": "["}, "set"),
            ({"json_schema": {"not": {}}}, "not"), ({"json_schema": {"$ref": "#/x"}}, "$ref"),
            ({"regex": "a", "json_schema": {}}, "exclude"), ({"regex": "(a{9999}){9999}"}, "too large"),
            ({"json_schema": {"type": "object", "properties": {"a": {"uniqueItems": True}}}}, "uniqueItems")]:
        r = s.post("/v1/completions", dict({"prompt": "x"}, **fields), 400)
        assert word in r["message"], (fields, r["message"])
    s.post("/v1/completions", {"prompt": "x", "max_tokens": 2, "regex": "", "json_schema": None, "response_format": {"type": "text"}})
    deep = {"type": "integer"}
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    s.post("/v1/completions", {"prompt": "x", "json_schema": deep}, 400)


def check_compact_server():
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"const": 1}, "minItems": 3, "maxItems": 3}}, "required": ["a"]}
    for flag in ("--constrained-json-disable-any-whitespace", "--disable-any-whitespace"):
        with Server(flag) as s:
            for seed in range(4):
                same(complete(s, schema, seed)["text"], '{"a":[1,1,1]}')
    with Server("--constrained-json-whitespace-pattern", " ") as s:
        same(complete(s, schema, 1)["text"], '{ "a" : [ 1 , 1 , 1 ] }')


if __name__ == "__main__":
    with Server() as server:
        run_all(globals(), server)
        server.wait_idle()
    check_compact_server()
