#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""/v1/responses: whole and streamed, kept and gone on from, cancelled."""
import json

from serve_lib import Server, run_all, same

ASK = {"input": "Hello", "max_output_tokens": 6, "temperature": 0}
WEATHER = {"type": "function", "name": "weather", "description": "now", "strict": False,
           "parameters": {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]}}


def events_of(s, body):
    """(type, data) of each event; numbers and types are checked."""
    status, headers, data = s.ask("POST", "/v1/responses", dict(body, stream=True))
    same(status, 200)
    assert headers["Content-Type"].startswith("text/event-stream")
    out = []
    for n, block in enumerate(e for e in data.decode().split("\n\n") if e):
        kind, line = block.split("\n")
        event = json.loads(line[6:])
        same((kind, event["sequence_number"]), ("event: " + event["type"], n))
        out.append(event)
    return out


def bare(response):
    """Without what differs from request to request."""
    text = json.dumps({k: v for k, v in response.items() if k not in ("id", "created_at", "usage")})
    return text.replace(response["id"][5:], "ID")


def test_whole(s):
    r = s.post("/v1/responses", dict(ASK, metadata={"a": "b"}, instructions="Be brief."))
    same((r["object"], r["status"], r["incomplete_details"]), ("response", "incomplete", {"reason": "max_output_tokens"}))
    same((r["metadata"], r["instructions"], r["max_output_tokens"]), ({"a": "b"}, "Be brief.", 6))
    same((r["temperature"], r["top_p"]), (0, 1))
    same(s.post("/v1/responses", dict(ASK, temperature=0.9, top_p=0.95))["temperature"], 0.9)
    assert r["id"].startswith("resp_") and r["output"][0]["type"] == "reasoning", r
    same(r["usage"]["output_tokens"], 6)
    same(r["usage"]["output_tokens_details"]["reasoning_tokens"], 6)
    chat = s.post("/v1/chat/completions", {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
                                           "max_tokens": 6, "temperature": 0})
    same(r["output"][0]["content"][0]["text"], chat["choices"][0]["message"]["reasoning_content"])
    same(json.loads(s.get("/v1/responses/" + r["id"])), r)


def test_input_forms(s):
    parts = [{"role": "user", "content": [{"type": "input_text", "text": "Hel"}, {"type": "input_text", "text": "lo"}]}]
    same(bare(s.post("/v1/responses", dict(ASK, input=parts))), bare(s.post("/v1/responses", ASK)))
    same(bare(s.post("/v1/responses", dict(ASK, input=[{"type": "message", "role": "user", "content": "Hello"}]))),
         bare(s.post("/v1/responses", ASK)))
    for body, word in (({}, "input"), ({"input": 5}, "input"), ({"input": [5]}, "input[0]"), ({"input": [{"content": "a"}]}, "role"),
                       ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input_image"),
                       ({"input": [{"type": "item_reference", "id": "x"}]}, "item_reference"),
                       (dict(ASK, background=True), "background"), (dict(ASK, tools=[{"type": "web_search"}]), "web_search"),
                       (dict(ASK, previous_response_id="resp_no"), "previous_response_id"), (dict(ASK, truncation="auto"), "truncation"),
                       (dict(ASK, store="yes"), "store"), (dict(ASK, input="a b " * 5000), "context")):
        r = s.post("/v1/responses", body, 400)
        assert word in r["message"], (word, r)


def test_stream(s):
    whole = s.post("/v1/responses", dict(ASK, max_output_tokens=20))
    events = events_of(s, dict(ASK, max_output_tokens=20))
    same([e["type"] for e in events[:2]], ["response.created", "response.in_progress"])
    same((events[0]["response"]["status"], events[0]["response"]["output"]), ("in_progress", []))
    last = events[-1]
    same((last["type"], bare(last["response"])), ("response.incomplete", bare(whole)))
    kinds = [e["type"] for e in events[2:-1]]
    same((kinds[:2], kinds[-3:]), (["response.output_item.added", "response.content_part.added"],
                                  ["response.reasoning_text.done", "response.content_part.done", "response.output_item.done"]))
    text = "".join(e["delta"] for e in events if e["type"] == "response.reasoning_text.delta")
    same(text, whole["output"][0]["content"][0]["text"])
    same(events[-2]["item"]["content"][0]["text"], text)
    same([e["item"] for e in events if e["type"] == "response.output_item.done"], last["response"]["output"])


def test_goes_on_from_another(s):
    first = s.post("/v1/responses", dict(ASK, instructions="Only here.", **THINK))
    said = next(o for o in first["output"] if o["type"] == "message")["content"][0]["text"]
    second = s.post("/v1/responses", dict(ASK, input="And?", previous_response_id=first["id"]))
    same(second["previous_response_id"], first["id"])
    by_hand = s.post("/v1/responses", dict(ASK, input=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": said},
                                                       {"role": "user", "content": "And?"}]))
    same(second["usage"]["input_tokens"], by_hand["usage"]["input_tokens"])
    same([o["content"] for o in second["output"]], [o["content"] for o in by_hand["output"]])
    third = events_of(s, dict(ASK, input="So?", previous_response_id=second["id"]))[-1]["response"]
    assert third["usage"]["input_tokens"] > second["usage"]["input_tokens"]
    same(s.ask("DELETE", "/v1/responses/" + first["id"])[0], 200)
    same([s.ask(m, "/v1/responses/" + first["id"])[0] for m in ("GET", "DELETE")], [404, 404])
    s.post("/v1/responses", dict(ASK, previous_response_id=first["id"]), 400)
    s.post("/v1/responses", dict(ASK, previous_response_id=second["id"]))  # has all it needs
    unkept = s.post("/v1/responses", dict(ASK, store=False))
    same(s.ask("GET", "/v1/responses/" + unkept["id"])[0], 404)


def test_tools(s):
    ask = dict(ASK, tools=[WEATHER], tool_choice={"type": "function", "name": "weather"}, max_output_tokens=600,
               parallel_tool_calls=False)
    whole = s.post("/v1/responses", ask)
    call = whole["output"][-1]
    same((call["type"], call["name"], whole["status"]), ("function_call", "weather", "completed"))
    assert json.loads(call["arguments"])["city"] in ("Rome", "Oslo"), call
    events = events_of(s, ask)
    same("".join(e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta"), call["arguments"])
    done = [e for e in events if e["type"] == "response.function_call_arguments.done"]
    same([e["arguments"] for e in done], [call["arguments"]])
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
    s.post("/v1/responses", {"input": [result], "previous_response_id": whole["id"], "tools": [WEATHER], "max_output_tokens": 3})
    s.post("/v1/responses", dict(ASK, tools=[WEATHER], input=[{"role": "user", "content": "Hello"}, call, result]))
    s.post("/v1/responses", dict(ASK, tools=[WEATHER], tool_choice="required"))


def test_json_schema(s):
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
    ask = dict(ASK, text={"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}}, max_output_tokens=300, **THINK)
    r = s.post("/v1/responses", ask)
    text = next(o for o in r["output"] if o["type"] == "message")["content"][0]["text"]
    assert isinstance(json.loads(text)["ok"], bool), r
    same(r["text"]["format"]["name"], "n")
    events = events_of(s, ask)
    same(events[-1]["type"], "response.completed")
    same("".join(e["delta"] for e in events if e["type"] == "response.output_text.delta"), text)


def test_format_beside_forced_call(s):
    """What instructor sends in its mode RESPONSES_TOOLS."""
    form = {"format": {"type": "json_schema", "name": "n", "strict": True, "schema": {"type": "object", "properties": {}, "additionalProperties": False}}}
    ask = dict(ASK, tools=[WEATHER], text=form, max_output_tokens=600, parallel_tool_calls=False)
    for choice in ({"type": "function", "name": "weather"}, "required"):
        call = s.post("/v1/responses", dict(ask, tool_choice=choice))["output"][-1]
        assert json.loads(call["arguments"])["city"] in ("Rome", "Oslo"), call


def test_errors_name_own_fields(s):
    for form, word in (({"type": "json_schema", "name": "n"}, "schema is missing"), ({"type": "xml"}, "xml"), ({}, "type"),
                       ({"type": "json_schema", "name": "n", "schema": {"not": {}}}, "not")):
        r = s.post("/v1/responses", dict(ASK, text={"format": form}), 400)
        assert "text.format" in r["message"] and "response_format" not in r["message"] and word in r["message"], r


def test_cancel(s):
    ask = dict(ASK, max_output_tokens=3500, ignore_eos=True, stream=True)
    c = s.connect()
    c.request("POST", "/v1/responses", json.dumps(ask))
    r = c.getresponse()
    r.readline()
    name = json.loads(r.readline()[6:])["response"]["id"]
    running = json.loads(s.get("/v1/responses/" + name))
    same((running["status"], running["output"]), ("in_progress", []))
    same(s.ask("POST", f"/v1/responses/{name}/cancel")[0], 200)
    events = [json.loads(x[6:]) for x in r.read().decode().split("\n") if x.startswith("data: ")]
    same(events[-1]["response"]["status"], "cancelled")
    c.close()
    same(json.loads(s.get("/v1/responses/" + name))["status"], "cancelled")
    same(s.ask("POST", f"/v1/responses/{name}/cancel")[0], 400)
    same(s.ask("POST", "/v1/responses/resp_no/cancel")[0], 404)
    same([s.ask("GET", p)[0] for p in ("/v1/responses", "/v1/responses/", "/v1/responses/a/b")], [405, 404, 404])


def test_errors(s):
    status, _, data = s.ask("POST", "/v1/responses", dict(ASK, stream=True, temperature=-1))
    same((status, json.loads(data)["error"]["param"]), (400, "temperature"))


if __name__ == "__main__":
    with Server() as server:
        ids = server.post("/tokenize", {"prompt": "</think>", "add_special_tokens": False})["tokens"]
        THINK = {"logit_bias": {str(ids[0]): 100}} if len(ids) == 1 else {}  # thinking ends at once
        assert THINK
        run_all(globals(), server)
