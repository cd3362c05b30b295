#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The stock litellm package by the three dialects it speaks to such servers: OpenAI's (chat, completions and
responses), Anthropic's and Ollama's.  Installs it into a virtual environment of its own; without a package index
the test is skipped (77).
serve_litellm.py PROGRAM DIRECTORY-FOR-THE-ENVIRONMENT"""
import os

from venv_lib import run_inside

run_inside(__file__, "litellm==1.106.2", "mcp")  # which it imports to call tools
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would be fetched
os.environ["LITELLM_MODE"] = "PRODUCTION"  # no .env file is read

import asyncio  # noqa: E402
import faulthandler  # noqa: E402
import json  # noqa: E402
from typing import Literal  # noqa: E402

import litellm  # noqa: E402
import pydantic  # noqa: E402
from serve_lib import Server, run_all, same  # noqa: E402

HELLO = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "weather", "description": "outside", "parameters": {
    "type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]}}}
NAMED = {"type": "function", "function": {"name": "weather"}}
litellm.telemetry = False
litellm.suppress_debug_info = True


class City(pydantic.BaseModel):
    name: Literal["Rome", "Oslo"]
    is_large: bool


def where(server, model):
    root = f"http://127.0.0.1:{server.port}"
    return {"model": model, "api_key": "none", "num_retries": 0, "max_retries": 0, "timeout": 60,
            "api_base": root if model.startswith(("anthropic/", "ollama")) else root + "/v1"}


def ask(server, model="openai/m", messages=HELLO, **fields):
    return litellm.completion(messages=messages, **where(server, model), **dict({"max_tokens": 8, "temperature": 0}, **fields))


def test_chat(server):
    """Reasoning comes as such; a stream adds up to the answer."""
    for model in ("openai/m", "hosted_vllm/m"):
        r = ask(server, model)
        message = r.choices[0].message
        same((r.choices[0].finish_reason, r.usage.completion_tokens), ("length", 8))
        assert message.reasoning_content, message
        chunks = list(ask(server, model, stream=True, stream_options={"include_usage": True}))
        whole = litellm.stream_chunk_builder(chunks, messages=HELLO)
        same(whole.choices[0].message.reasoning_content, message.reasoning_content)
        same(whole.usage.completion_tokens, 8)


def test_other_dialects(server):
    for model in ("anthropic/m", "ollama_chat/m"):
        r = ask(server, model)
        text = r.choices[0].message.content or r.choices[0].message.reasoning_content
        got = ""
        for chunk in ask(server, model, stream=True):
            delta = chunk.choices[0].delta
            got += (getattr(delta, "reasoning_content", None) or "") + (delta.content or "")
        assert text, (model, r)
        same(got, text, model)


def test_tools(server):
    for model in ("openai/m", "anthropic/m"):
        r = ask(server, model, tools=[TOOL], tool_choice=NAMED, parallel_tool_calls=False, max_tokens=300)
        call = r.choices[0].message.tool_calls[0]
        same(call.function.name, "weather", model)
        assert json.loads(call.function.arguments)["city"] in ("Rome", "Oslo"), call
        chunks = list(ask(server, model, tools=[TOOL], tool_choice=NAMED, parallel_tool_calls=False, max_tokens=300, stream=True))
        again = litellm.stream_chunk_builder(chunks, messages=HELLO).choices[0].message.tool_calls[0]
        same((again.function.name, json.loads(again.function.arguments)),
             (call.function.name, json.loads(call.function.arguments)), model)
        talk = HELLO + [r.choices[0].message.model_dump(exclude_none=True),
                        {"role": "tool", "tool_call_id": call.id, "name": "weather", "content": "rain"}]
        same(ask(server, model, talk, tools=[TOOL], max_tokens=4).usage.completion_tokens, 4, model)


def test_structured_output(server):
    for form in (City, {"type": "json_schema", "json_schema": {"name": "city", "schema": City.model_json_schema(), "strict": True}}):
        r = ask(server, response_format=form, max_tokens=400, extra_body=END_THINKING)
        City.model_validate_json(r.choices[0].message.content)


def test_responses(server):
    at = where(server, "openai/m")
    r = litellm.responses(input="Hello", max_output_tokens=16, temperature=0, **at)
    same((r.status, r.usage.output_tokens), ("incomplete", 16))
    flat = dict(TOOL["function"], type="function")
    r = litellm.responses(input="Hello", tools=[flat], tool_choice="required", parallel_tool_calls=False, max_output_tokens=600, **at)
    calls = [o for o in r.output if o.type == "function_call"]
    same([c.name for c in calls], ["weather"])
    form = {"input": "Hello", "text_format": City, "temperature": 0, "max_output_tokens": 600, "extra_body": END_THINKING}
    r = litellm.responses(**form, **at)
    text = "".join(c.text for o in r.output if o.type == "message" for c in o.content)
    City.model_validate_json(text)
    deltas = [e.delta for e in litellm.responses(stream=True, **form, **at) if e.type == "response.output_text.delta"]
    same("".join(deltas), text)


def test_completions_and_async(server):
    at = where(server, "text-completion-openai/m")
    r = litellm.text_completion(prompt="Hello", max_tokens=8, temperature=0, **at)
    got = "".join(c.choices[0].text or "" for c in litellm.text_completion(prompt="Hello", max_tokens=8, temperature=0, stream=True, **at))
    same(got, r.choices[0].text)

    async def ask_all():
        at = where(server, "openai/m")
        return await asyncio.gather(*(litellm.acompletion(messages=HELLO, max_tokens=8, temperature=0, **at) for _ in range(8)))

    same(len({r.choices[0].message.reasoning_content for r in asyncio.run(ask_all())}), 1)


def test_overlong_is_recognised(server):
    """A class of its own, by which routers fall back to another model."""
    for model in ("openai/m", "hosted_vllm/m", "anthropic/m"):
        try:
            ask(server, model, [{"role": "user", "content": "a b " * 5000}])
            raise AssertionError("it fits?")
        except litellm.ContextWindowExceededError:
            pass


if __name__ == "__main__":
    faulthandler.dump_traceback_later(240, exit=True)  # it has threads of its own: where they wait would be seen
    with Server() as s:
        think_end = s.post("/tokenize", {"prompt": "</think>", "add_special_tokens": False})["tokens"][0]
        END_THINKING = {"logit_bias": {think_end: 100}}
        run_all(globals(), s)
