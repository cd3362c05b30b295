#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The stock instructor package, which asks for objects by forced calls.  Installs it into a virtual
environment of its own; without a package index the test is skipped (77).
serve_instructor.py PROGRAM DIRECTORY-FOR-THE-ENVIRONMENT"""
from venv_lib import run_inside

run_inside(__file__, "instructor")

from typing import Literal  # noqa: E402

import instructor  # noqa: E402
import openai  # noqa: E402
import pydantic  # noqa: E402
from serve_lib import Server, run_all  # noqa: E402

HELLO = [{"role": "user", "content": "Hello"}]


class City(pydantic.BaseModel):
    name: Literal["Rome", "Oslo"]
    is_large: bool


def ask(server, mode, **fields):
    plain = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
    city = instructor.from_openai(plain, mode=mode).chat.completions.create(
        model="m", messages=HELLO, response_model=City, max_retries=0, temperature=0, parallel_tool_calls=False,
        **fields)
    assert city.name in ("Rome", "Oslo"), city


def test_tools(server):
    ask(server, instructor.Mode.TOOLS, max_tokens=600)


def test_responses_tools(server):
    ask(server, instructor.Mode.RESPONSES_TOOLS, max_output_tokens=600)


if __name__ == "__main__":
    with Server() as s:
        run_all(globals(), s)
