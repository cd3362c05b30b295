#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a set of held-out questions for `fathom eval`.

    make_set.py OUT.jsonl [--per-task 100] [--seed 99]

The generators are those of the training data, but only exercises that training never draws are
taken (tools/train/tasks.py); small closed sets, such as the capitals, are asked as learned.
"""
import argparse
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "train"))
import tasks  # noqa: E402


def as_message(m):
    """Tool calls in the form of the chat API."""
    calls = [{"type": "function", "function": {"name": n, "arguments": a}}
             for n, a in m.get("tool_calls") or []]
    return {k: v
            for k, v in m.items() if k != "tool_calls"} | ({"tool_calls": calls} if calls else {})


def question(rng, make):
    s = tasks.draw(rng, make, held_out=True)
    line = {
        "task": s["task"], "messages": [as_message(m) for m in s["messages"]], "check": s["check"]
    }
    return line | ({"tools": s["tools"]} if s["tools"] else {})


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("out")
    ap.add_argument("--per-task", type=int, default=100)
    ap.add_argument("--seed", type=int, default=99)
    a = ap.parse_args()
    rng = random.Random(a.seed)
    lines = [question(rng, make) for _ in range(a.per_task) for make in tasks.MIXTURE]
    with open(a.out, "w") as f:
        f.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


if __name__ == "__main__":
    main()
