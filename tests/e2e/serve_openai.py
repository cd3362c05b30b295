#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The stock openai package against fathom serve.  Installs it into a virtual
environment; without a package index the test is skipped (77).
serve_openai.py PROGRAM DIRECTORY-FOR-THE-ENVIRONMENT"""
from venv_lib import CLIENTS, run_inside

run_inside(__file__, *CLIENTS)

import asyncio  # noqa: E402
import json  # noqa: E402
from typing import Literal, Optional  # noqa: E402

import openai  # noqa: E402
import pydantic  # noqa: E402
from serve_lib import Server, run_all, same  # noqa: E402

HELLO = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


def test_chat(client):
    r = client.chat.completions.create(model="m", messages=HELLO, max_tokens=8, temperature=0)
    same((r.choices[0].finish_reason, r.usage.completion_tokens, r.model), ("length", 8, "m"))
    text = ""
    with client.chat.completions.create(model="m", messages=HELLO, max_tokens=8, temperature=0, stream=True,
                                        stream_options={"include_usage": True}) as stream:
        for chunk in stream:
            if chunk.choices:
                text += chunk.choices[0].delta.reasoning_content or ""
            else:
                same(chunk.usage.completion_tokens, 8)
    same(text, r.choices[0].message.reasoning_content)


def test_tools(client):
    choice = {"type": "function", "function": {"name": "weather"}}
    r = client.chat.completions.create(model="m", messages=HELLO, max_tokens=8, temperature=0, tools=[TOOL], tool_choice=choice)
    call = r.choices[0].message.tool_calls[0]
    same(call.function.name, "weather")
    name, arguments = "", ""
    for chunk in client.chat.completions.create(model="m", messages=HELLO, max_tokens=8, temperature=0, tools=[TOOL],
                                                tool_choice=choice, stream=True):
        for t in chunk.choices[0].delta.tool_calls or []:
            name += t.function.name or ""
            arguments += t.function.arguments or ""
    same((name, arguments), ("weather", call.function.arguments))
    talk = HELLO + [r.choices[0].message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
    client.chat.completions.create(model="m", messages=talk, max_tokens=2, tools=[TOOL])


def test_logprobs(client):
    r = client.chat.completions.create(model="m", messages=HELLO, max_tokens=4, temperature=0, logprobs=True, top_logprobs=2)
    for c in r.choices[0].logprobs.content:
        same(c.top_logprobs[0].token, c.token)
    r = client.completions.create(model="m", prompt=["Hello", "Bye"], max_tokens=4, temperature=0, logprobs=1, n=2)
    same([c.index for c in r.choices], [0, 1, 2, 3])
    same(len(r.choices[3].logprobs.tokens), 4)
    r = client.completions.create(model="m", prompt="Hello there", max_tokens=0, logprobs=1, echo=True)
    same((r.choices[0].text, r.choices[0].logprobs.token_logprobs[0]), ("Hello there", None))
    assert all(x < 0 for x in r.choices[0].logprobs.token_logprobs[1:])


def test_parse(client):
    """A pydantic model in, an instance of it out; thinking ends at once, and answers are drawn at random."""
    class Step(pydantic.BaseModel):
        kind: Literal["add", "sub"]
        by: int
        exact: Optional[bool] = None

    class Plan(pydantic.BaseModel):
        steps: list[Step] = pydantic.Field(max_length=3)
        done: bool

    for seed in range(5):
        r = client.chat.completions.parse(model="m", messages=HELLO, max_tokens=600, seed=seed, response_format=Plan,
                                          logit_bias={THINK_END: 100})
        same(r.choices[0].finish_reason, "stop")
        assert isinstance(r.choices[0].message.parsed, Plan), r


def test_parse_sets(client):
    """Sets of models, tuples and unions: as many members as items, so no two are alike."""
    class Tag(pydantic.BaseModel, frozen=True):
        name: Literal["a", "b"]
        weight: Optional[bool] = None

    class Sets(pydantic.BaseModel):
        tags: set[Tag] = pydantic.Field(min_length=3, max_length=5)
        pairs: set[tuple[Literal[1, 2], bool]] = pydantic.Field(min_length=3)
        mixed: set[bool | Literal["x", "y"]] = pydantic.Field(min_length=2)

    for seed in range(5):
        r = client.chat.completions.parse(model="m", messages=HELLO, max_tokens=900, seed=seed, response_format=Sets,
                                          logit_bias={THINK_END: 100})
        text, parsed = json.loads(r.choices[0].message.content), r.choices[0].message.parsed
        same([len(text[k]) for k in ("tags", "pairs", "mixed")], [len(parsed.tags), len(parsed.pairs), len(parsed.mixed)])
        assert len(parsed.tags) >= 3 and len(parsed.pairs) >= 3 and len(parsed.mixed) >= 2, parsed


def test_responses(client):
    r = client.responses.create(model="m", input="Hello", max_output_tokens=8, temperature=0)
    same((r.status, r.incomplete_details.reason, r.usage.output_tokens), ("incomplete", "max_output_tokens", 8))
    same(client.responses.retrieve(r.id).id, r.id)
    again = client.responses.create(model="m", input="And?", previous_response_id=r.id, max_output_tokens=4)
    assert again.usage.input_tokens > r.usage.input_tokens
    thought = "".join(e.delta for e in client.responses.create(model="m", input="Hello", max_output_tokens=8, temperature=0,
                                                              stream=True) if e.type == "response.reasoning_text.delta")
    same(thought, r.output[0].content[0].text)
    bias = {"logit_bias": {THINK_END: 100}}
    class Step(pydantic.BaseModel):
        kind: Literal["add", "sub"]

    with client.responses.stream(model="m", input="Hello", max_output_tokens=300, temperature=0, extra_body=bias,
                                 text_format=Step) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        same(stream.get_final_response().output_text, text)
    parsed = client.responses.parse(model="m", input="Hello", text_format=Step, max_output_tokens=300, extra_body=bias)
    assert isinstance(parsed.output_parsed, Step), parsed
    tool = {"type": "function", "name": "weather", "strict": False, "parameters": {"type": "object", "properties": {}}}
    r = client.responses.create(model="m", input="Hello", tools=[tool], tool_choice="required", parallel_tool_calls=False,
                                max_output_tokens=600)
    call = r.output[-1]
    same((call.type, call.name), ("function_call", "weather"))
    talk = [{"role": "user", "content": "Hello"}, call.model_dump(exclude_none=True),
            {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}]
    client.responses.create(model="m", input=talk, tools=[tool], max_output_tokens=3)
    client.responses.delete(r.id)
    try:
        client.responses.retrieve(r.id)
        raise AssertionError("it is still there")
    except openai.NotFoundError:
        pass
    try:
        client.responses.create(model="m", input="a b " * 5000)
        raise AssertionError("it fits?")
    except openai.BadRequestError as e:
        same(e.code, "context_length_exceeded")


def test_models_and_errors(client):
    same([m.id for m in client.models.list()], ["r1-mini"])
    same(client.models.retrieve("r1-mini").id, "r1-mini")
    for call, kind in ((lambda: client.models.retrieve("no"), openai.NotFoundError),
                       (lambda: client.chat.completions.create(model="m", messages=HELLO, temperature=-1), openai.BadRequestError)):
        try:
            call()
        except kind as e:
            assert e.message
        else:
            raise AssertionError(kind)


def test_async(client):
    async def one(c, i):
        stream = await c.completions.create(model="m", prompt=f"Hello {i}", max_tokens=8, temperature=0, stream=True)
        return "".join([e.choices[0].text async for e in stream])

    async def all_of_them():
        async with openai.AsyncOpenAI(base_url=client.base_url, api_key="x") as c:
            return await asyncio.gather(*(one(c, i) for i in range(32)))

    texts = asyncio.run(all_of_them())
    for i in (0, 31):
        same(texts[i], client.completions.create(model="m", prompt=f"Hello {i}", max_tokens=8, temperature=0).choices[0].text)


if __name__ == "__main__":
    with Server() as server:
        THINK_END = server.post("/tokenize", {"prompt": "</think>", "add_special_tokens": False})["tokens"][0]
        run_all(globals(), openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="x", max_retries=0))
