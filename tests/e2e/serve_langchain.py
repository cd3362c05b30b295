#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The stock langchain-openai package, over chat completions and over responses.  Installs it into a virtual
environment; without a package index the test is skipped (77).
serve_langchain.py PROGRAM DIRECTORY-FOR-THE-ENVIRONMENT"""
import os

from venv_lib import CLIENTS, run_inside

run_inside(__file__, *CLIENTS)
os.environ["LANGSMITH_TRACING"] = "false"

import asyncio  # noqa: E402
from typing import Literal  # noqa: E402

import openai  # noqa: E402
import pydantic  # noqa: E402
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI, OpenAI  # noqa: E402
from serve_lib import Server, run_all, same  # noqa: E402

TALK = [SystemMessage("Be brief."), HumanMessage("Hello")]


class City(pydantic.BaseModel):
    """A place."""
    name: Literal["Rome", "Oslo"]
    is_large: bool


@tool
def weather(city: Literal["Rome", "Oslo"]) -> str:
    """How it is outside."""
    return "rain in " + city


def model(server, **fields):
    return ChatOpenAI(model="m", base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0, temperature=0,
                      timeout=60, **dict({"max_tokens": 8}, **fields))


def over_responses(server, **fields):
    return model(server, use_responses_api=True, **fields)


def both(server, **fields):
    return model(server, **fields), over_responses(server, **fields)


def test_chat_and_stream(server):
    texts = []
    for m in both(server, stream_usage=True):
        r = m.invoke(TALK)
        same(r.usage_metadata["output_tokens"], 8)
        whole = None
        for chunk in m.stream(TALK):
            whole = chunk if whole is None else whole + chunk
        same((whole.text, whole.usage_metadata), (r.text, r.usage_metadata))
        assert r.text, r
        texts.append(r.text)
    same(texts[0], texts[1])
    same(model(server).invoke(TALK).response_metadata["finish_reason"], "length")


def test_batch_and_async(server):
    async def ask_all(*models):
        return [await asyncio.gather(*(m.ainvoke(f"Hello {i}") for i in range(8))) for m in models]

    texts = [[r.text for r in m.batch([f"Hello {i}" for i in range(8)])] for m in both(server)]
    same([[r.text for r in answers] for answers in asyncio.run(ask_all(*both(server)))], texts)


def test_tools(server):
    for m in both(server, max_tokens=200):
        bound = m.bind_tools([weather], tool_choice="weather", parallel_tool_calls=False)
        r = bound.invoke(TALK)
        call = r.tool_calls[0]
        same((call["name"], set(call["args"])), ("weather", {"city"}))
        whole = None
        for chunk in bound.stream(TALK):
            whole = chunk if whole is None else whole + chunk
        same([(c["name"], c["args"]) for c in whole.tool_calls], [(c["name"], c["args"]) for c in r.tool_calls])
        answer = weather.invoke(call)
        assert isinstance(answer, ToolMessage) and answer.tool_call_id == call["id"], answer
        m.bind_tools([weather]).invoke(TALK + [r, answer], max_tokens=4)


def test_structured_output(server):
    for m in both(server, max_tokens=300):
        for method in ("json_schema", "function_calling"):
            for strict in (None, True):
                got = m.with_structured_output(City, method=method, strict=strict).invoke(TALK)
                assert isinstance(got, City), (method, got)
        raw = m.with_structured_output(City.model_json_schema(), include_raw=True).invoke(TALK)
        assert raw["parsing_error"] is None and City.model_validate(raw["parsed"]), raw


def test_goes_on_from_a_response(server):
    m = over_responses(server)
    first = m.invoke(TALK)
    again = m.invoke([HumanMessage("And?")], previous_response_id=first.response_metadata["id"])
    assert again.usage_metadata["input_tokens"] > first.usage_metadata["input_tokens"], again


def test_completions(server):
    m = OpenAI(model="m", base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0, temperature=0, max_tokens=8)
    same("".join(m.stream("Hello")), m.invoke("Hello"))


def test_overlong(server):
    for m in both(server):
        try:
            m.invoke("a b " * 5000)
            raise AssertionError("it fits?")
        except openai.BadRequestError as e:
            same(e.code, "context_length_exceeded")


if __name__ == "__main__":
    # fathom-tiny: it does not think first, and this client does not show what a model thinks.
    with Server(model=["--model-path", "fathom-tiny", "--quiet"]) as s:
        run_all(globals(), s)
