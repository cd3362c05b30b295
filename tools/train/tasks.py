# SPDX-License-Identifier: Apache-2.0
"""The mixture of exercises, and the line between training and held-out ones."""
import json
import zlib

import tasks_extract
import tasks_letters
import tasks_numbers
import tasks_talk
import tasks_tools
from words_tab import SYSTEM

# generator -> weight in the training mixture
MIXTURE = {
    tasks_numbers.add2: 6, tasks_numbers.add3: 9, tasks_numbers.sub2: 6, tasks_numbers.sub3: 9,
    tasks_numbers.sort_numbers: 10, tasks_numbers.running_sum: 5,
    tasks_letters.reverse: 11, tasks_letters.count: 11, tasks_letters.length: 5, tasks_letters.spell: 10,
    tasks_letters.sort_words: 6, tasks_letters.reverse_follow_up: 2,
    tasks_extract.extract: 14,
    tasks_tools.call: 12, tasks_tools.two_calls: 2, tasks_tools.no_call: 1, tasks_tools.result: 5,
    tasks_tools.sum_by_tool: 2,
    tasks_talk.fact: 8, tasks_talk.fact_follow_up: 3, tasks_talk.remember_name: 3, tasks_talk.greet: 2,
    tasks_talk.small_talk: 2, tasks_talk.unknown: 2, tasks_talk.story: 4,
}

# Small closed sets: everything is trained on, and the evaluation asks for what was learned.
CLOSED = {"fact", "talk", "unknown", "tool_unused"}


def is_held_out(task, key):
    """One exercise in sixteen is never trained on; a key with bars names several exercises in one."""
    return task not in CLOSED and any(zlib.crc32(k.encode()) % 16 == 0 for k in key.split("|"))


def write_carelessly(m):
    """what people type: no capital in front, no mark at the end"""
    if m["role"] == "user":
        m["content"] = m["content"][:1].lower() + m["content"][1:].rstrip(".?")


def draw(rng, make, held_out):
    while True:
        s = make(rng)
        if s["task"] in CLOSED or is_held_out(s["task"], s["key"]) == held_out:
            break
    if s["task"] != "json" and rng.random() < 0.2:
        write_carelessly(s["messages"][-1])
    if rng.random() < 0.25:
        s["messages"] = [{"role": "system", "content": rng.choice(SYSTEM)}] + s["messages"]
    return s


def draw_training(rng):
    make = rng.choices(list(MIXTURE), MIXTURE.values())[0]
    return draw(rng, make, held_out=False)


def dumper(rng):
    """Servers write the list of tools with or without spaces."""
    if rng.random() < 0.5:
        return json.dumps
    return lambda o: json.dumps(o, separators=(",", ":"))
