# SPDX-License-Identifier: Apache-2.0
"""One exercise: a conversation, what the model is to write next, and how to mark it.

check is what the evaluation looks at (app/eval_score.c):
    number    the last integer of the answer is value
    text      the answer is value
    contains  the answer contains value
    json      the answer is one JSON object with exactly the keys and types of value, and equal to it
    call      the answer ends in well-formed calls equal to value, [[name, arguments], ...]
    prose     the answer is not empty and ends in a full stop, question or exclamation mark
"""


def sample(task, key, user, think, answer, check, tools=None, calls=None, before=()):
    """key names the exercise for the split into training and held-out ones."""
    messages = list(before) + ([{"role": "user", "content": user}] if user is not None else [])
    return {
        "task": task, "key": key, "messages": messages, "tools": tools or [], "think": think,
        "answer": answer, "calls": calls or [], "check": check
    }


def letters(word):
    """A word to be written letter by letter: the marks keep the encoder from merging them."""
    return f"\x01{word}\x01"


def pick(rng, *choices):
    return choices[rng.randrange(len(choices))]


def invented_word(rng, syllables):
    """A pronounceable word nobody has seen, so that it must be copied or spelled, not recalled."""
    return "".join(
        rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") +
        (rng.choice("lmnrst") if rng.random() < 0.3 else "") for _ in range(syllables))
