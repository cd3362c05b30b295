# SPDX-License-Identifier: Apache-2.0
"""Sentences into JSON that fits a given schema."""
import json

from sample import invented_word, pick, sample
from words_tab import CAPITAL, COLOUR, DAY, FIRST, ITEM, MONTH, PLACE, TITLE

CITY = sorted(
    set(CAPITAL.values()) | {"Hamburg", "Lyon", "Porto", "Bergen", "Milan", "Osaka", "Boston"})
JOBS = "baker teacher farmer pilot doctor painter sailor writer singer nurse".split()


def a_name(rng):
    return rng.choice(FIRST) if rng.random() < 0.6 else invented_word(rng, rng.choice(
        (2, 3))).capitalize()


def a_city(rng):
    return rng.choice(CITY) if rng.random() < 0.7 else invented_word(rng, rng.choice(
        (2, 3))).capitalize()


def person(rng):
    f = {
        "name": a_name(rng), "age": rng.randint(1, 99), "city": a_city(rng), "job": rng.choice(JOBS)
    }
    n, a, c, j = f["name"], f["age"], f["city"], f["job"]
    return f, pick(rng, f"{n} is {a} years old, lives in {c} and works as a {j}.",
                   f"{n}, aged {a}, is a {j} from {c}.", f"My friend {n} ({a}) is a {j} in {c}.",
                   f"The {j} {n} lives in {c} and turned {a} last week.",
                   f"In {c} I met {n}, a {j} of {a} years.")


def order(rng):
    f = {
        "customer": a_name(rng), "item": rng.choice(ITEM), "quantity": rng.randint(2, 99),
        "price": rng.randint(1, 500)
    }
    n, i, q, p = f["customer"], f["item"], f["quantity"], f["price"]
    return f, pick(rng, f"{n} ordered {q} {i} for {p} euros.",
                   f"Please send {q} {i} to {n}; the price is {p}.",
                   f"{n} buys {q} {i} and pays {p} dollars.",
                   f"Invoice for {n}: {q} {i}, total {p}.")


def event(rng):
    f = {
        "title": rng.choice(TITLE), "day": rng.choice(DAY), "hour": rng.randint(7, 22),
        "place": rng.choice(PLACE)
    }
    t, d, h, p = f["title"], f["day"], f["hour"], f["place"]
    return f, pick(rng, f"The {t} is on {d} at {h} in {p}.",
                   f"On {d} at {h} there is a {t} at {p}.",
                   f"Do not miss the {t} at {p}, {d} at {h}.",
                   f"Come to {p} on {d}: the {t} begins at {h}.")


def book(rng):
    f = {
        "title": f"The {pick(rng, 'Old', 'Red', 'Last', 'Silent', 'Long')} {rng.choice(TITLE).capitalize()}",
        "author": f"{a_name(rng)} {a_name(rng)}", "year": rng.randint(1800, 2025),
        "lent": rng.random() < 0.5
    }
    t, a, y = f["title"], f["author"], f["year"]
    state = pick(rng, "It is lent out.", "Somebody has borrowed it.") if f["lent"] else \
        pick(rng, "It is on the shelf.", "It is here.")
    return f, pick(rng, f"{t} by {a} was printed in {y}. {state}", f"In {y} {a} wrote {t}. {state}")


def thing(rng):
    f = {
        "item": rng.choice(ITEM), "colour": rng.choice(sorted(set(COLOUR.values()))),
        "weight": rng.randint(1, 90), "month": rng.choice(MONTH)
    }
    i, c, w, m = f["item"], f["colour"], f["weight"], f["month"]
    return f, pick(rng, f"The {c} {i} weigh {w} kilos and arrive in {m}.",
                   f"In {m} we sell {c} {i}, {w} kilos per box.",
                   f"We have {c} {i} since {m}; weight {w}.")


def kind_of(value):
    if isinstance(value, bool):
        return "boolean"
    return "integer" if isinstance(value, int) else "string"


def json_schema(fields):
    return {
        "type": "object", "properties": {k: {"type": kind_of(v)}
                                         for k, v in fields.items()}, "required": list(fields)
    }


def ask(rng, fields, text):
    keys = ", ".join(f"{k} ({kind_of(v)})" for k, v in fields.items())
    names = ", ".join(fields)
    dump = pick(rng, json.dumps, lambda o: json.dumps(o, separators=(",", ":")))
    schema = dump(json_schema(fields))
    short = dump({k: kind_of(v) for k, v in fields.items()})
    return pick(rng, f"Extract {names} as JSON: {text}",
                f"Extract JSON with the keys {keys}.\n\n{text}",
                f"{text}\n\nReturn JSON that fits this schema: {schema}",
                f"Schema: {schema}\nText: {text}", f"Fill in {short} from this text: {text}",
                f"{text}\nGive me {names} as JSON.", f"Answer in JSON that fits {schema}\n{text}")


def shown(value):
    return json.dumps(value) if isinstance(value, bool) else str(value)


def extract(rng):
    fields, text = pick(rng, person, person, order, event, book, thing)(rng)
    keys = rng.sample(list(fields), rng.randint(2, len(fields)))
    wanted = {k: fields[k] for k in keys}
    think = ", ".join(f"{k} is {shown(v)}" for k, v in wanted.items()) + "."
    return sample("json", text, ask(rng, wanted, text), think, json.dumps(wanted),
                  {"kind": "json", "value": wanted})
