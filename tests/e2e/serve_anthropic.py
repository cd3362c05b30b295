#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The stock anthropic package against fathom serve.  Installs it into a virtual
environment; without a package index the test is skipped (77).
serve_anthropic.py PROGRAM DIRECTORY-FOR-THE-ENVIRONMENT"""
from venv_lib import CLIENTS, run_inside

run_inside(__file__, *CLIENTS)

import asyncio  # noqa: E402

import anthropic  # noqa: E402
from serve_lib import Server, run_all, same  # noqa: E402

HELLO = [{"role": "user", "content": "Hello"}]
ASK = {"model": "m", "max_tokens": 12, "messages": HELLO, "extra_body": {"temperature": 0}}  # not every version has a temperature
TOOL = {"name": "weather", "description": "of a city", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 8}}, "required": ["city"]}}


def words(message):
    return "".join(getattr(b, "text", "") + getattr(b, "thinking", "") for b in message.content)


def test_message(client):
    r = client.messages.create(**ASK)
    same((r.type, r.role, r.model, r.stop_reason, r.usage.output_tokens), ("message", "assistant", "m", "max_tokens", 12))
    assert words(r)


def test_stream(client):
    want = words(client.messages.create(**ASK))
    with client.messages.stream(**ASK) as stream:
        kinds = [e.type for e in stream]
        same(words(stream.get_final_message()), want)
    same((kinds[0], kinds[-1]), ("message_start", "message_stop"))
    assert "content_block_delta" in kinds


def test_async_stream(client):
    async def run():
        async with anthropic.AsyncAnthropic(base_url=str(client.base_url), api_key="x") as other:
            async with other.messages.stream(**ASK) as stream:
                return words(await stream.get_final_message())
    same(asyncio.run(run()), words(client.messages.create(**ASK)))


def test_tools(client):
    ask = dict(ASK, max_tokens=60, tools=[TOOL], tool_choice={"type": "tool", "name": "weather"})
    r = client.messages.create(**ask)
    call = next(b for b in r.content if b.type == "tool_use")
    same((call.name, list(call.input)), ("weather", ["city"]))
    with client.messages.stream(**ask) as stream:
        streamed = next(b for b in stream.get_final_message().content if b.type == "tool_use")
    same(streamed.input, call.input)
    turns = HELLO + [{"role": "assistant", "content": [{"type": "tool_use", "id": call.id, "name": "weather", "input": call.input}]},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "rain"}]}]
    assert words(client.messages.create(**dict(ASK, messages=turns, tools=[TOOL])))


def test_system_and_stop(client):
    r = client.messages.create(**dict(ASK, system="Be brief.", stop_sequences=["e", "a", "i", "o", "u"], max_tokens=200))
    same(r.stop_reason in ("stop_sequence", "max_tokens", "end_turn"), True)


def test_count_tokens(client):
    n = client.messages.count_tokens(model="m", messages=HELLO).input_tokens
    same(client.messages.create(**ASK).usage.input_tokens, n)


def test_errors(client):
    for wrong in ({"max_tokens": -1}, {"messages": []}, {"extra_body": {"temperature": -1}}):
        try:
            client.messages.create(**dict(ASK, **wrong))
            raise AssertionError(f"{wrong} was taken")
        except anthropic.BadRequestError as e:
            same(e.body["error"]["type"], "invalid_request_error")
    with anthropic.Anthropic(base_url=str(client.base_url), api_key="wrong", max_retries=0) as other:
        try:
            other.messages.create(**ASK)
            raise AssertionError("a wrong key was taken")
        except anthropic.AuthenticationError as e:
            same(e.status_code, 401)


if __name__ == "__main__":
    with Server("--api-key", "x") as s:
        with anthropic.Anthropic(base_url=f"http://127.0.0.1:{s.port}", api_key="x", max_retries=0) as stock:
            run_all(globals(), stock)
