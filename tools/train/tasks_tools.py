# SPDX-License-Identifier: Apache-2.0
"""Tool calls: which function, which arguments, and what to say about the result."""
import json

from sample import pick, sample
from tasks_extract import a_city, a_name
from tasks_numbers import ask_sum
from words_tab import CONDITION, HELLO, WORD


def function(name, about, **parameters):
    properties = {k: {"type": t} for k, t in parameters.items()}
    return {
        "type": "function", "function": {
            "name": name, "description": about, "parameters": {
                "type": "object", "properties": properties, "required": list(parameters)
            }
        }
    }


def expression(rng):
    a, b, c = rng.randint(2, 999), rng.randint(2, 999), rng.randint(2, 99)
    return pick(rng, f"{a} * {b}", f"{a} + {b}", f"{a} - {b}", f"{a} / {c}", f"{a} * {c} + {b}",
                f"({a} + {b}) * {c}", f"{a} * {c}")


def calculator(rng):
    e = expression(rng)
    tool = function(pick(rng, "calculator", "calculator", "calculate", "calc", "evaluate"),
                    pick(rng, "Evaluates an expression.",
                         "Computes the value of an arithmetic expression.", "A calculator."),
                    expression="string")
    user = pick(rng, f"What is {e}?", f"Compute {e}.", f"Please calculate {e}", f"{e}",
                f"How much is {e}?", f"Use the calculator: {e}")
    return tool, user, {"expression": e}, f"This is arithmetic: {e}."


def weather(rng):
    city = a_city(rng)
    where = pick(rng, "city", "city", "location")
    tool = function(
        pick(rng, "get_weather", "get_weather", "weather", "current_weather", "get_forecast"),
        pick(rng, "The weather in a city.", "Get the current weather.", "Tells the weather."),
        **{where: "string"})
    user = pick(rng, f"What is the weather in {city}?", f"How is the weather in {city}?",
                f"weather in {city}", f"Is it raining in {city}?",
                f"Do I need an umbrella in {city}?", f"How warm is it in {city}?",
                f"What's the weather like in {city} today?")
    return tool, user, {where: city}, f"The user asks about the weather in {city}."


def time_of_day(rng):
    city = a_city(rng)
    tool = function(pick(rng, "get_time", "current_time", "clock"),
                    pick(rng, "The time in a city.", "Tells the local time."),
                    city="string")
    user = pick(rng, f"What time is it in {city}?", f"How late is it in {city}?", f"time in {city}")
    return tool, user, {"city": city}, f"The user asks for the time in {city}."


def timer(rng):
    n = rng.randint(1, 90)
    tool = function(pick(rng, "set_timer", "start_timer"),
                    pick(rng, "Sets a timer.", "Starts a timer."),
                    minutes="integer")
    user = pick(rng, f"Set a timer for {n} minutes.", f"Wake me in {n} minutes.",
                f"Timer: {n} minutes")
    return tool, user, {"minutes": n}, f"The user wants a timer of {n} minutes."


def message(rng):
    name, text = a_name(rng), f"{pick(rng, 'bring', 'buy', 'find', 'sell')} the {rng.choice(WORD)}"
    tool = function(pick(rng, "send_message", "send_text"),
                    "Sends a message.",
                    to="string",
                    text="string")
    user = pick(rng, f"Tell {name}: {text}", f"Send {name} the message: {text}",
                f"Write to {name}: {text}")
    return tool, user, {"to": name, "text": text}, f"The user wants to tell {name} something."


KINDS = (calculator, weather, time_of_day, timer, message)


def offered(rng, tool, kind):
    """The tool among up to two others."""
    others = [k for k in KINDS if k is not kind]
    tools = [tool] + [k(rng)[0] for k in rng.sample(others, rng.choice((0, 0, 1, 1, 2)))]
    rng.shuffle(tools)
    return tools


def chosen(rng):
    return pick(rng, calculator, calculator, weather, weather, time_of_day, timer, message)


def call(rng):
    kind = chosen(rng)
    tool, user, args, think = kind(rng)
    name = tool["function"]["name"]
    return sample("tool_call",
                  user,
                  user,
                  f"{think} I call {name}.",
                  "", {"kind": "call", "value": [[name, args]]},
                  tools=offered(rng, tool, kind),
                  calls=[(name, json.dumps(args))])


def two_calls(rng):
    tool, _, args, _ = weather(rng)
    (where, one), two, name = list(args.items())[0], a_city(rng), tool["function"]["name"]
    user = pick(rng, f"What is the weather in {one} and in {two}?",
                f"Compare the weather in {one} and {two}.")
    both = [[name, {where: one}], [name, {where: two}]]
    return sample("tool_call",
                  user,
                  user,
                  f"The user asks about the weather in {one} and {two}. I call {name} twice.",
                  "", {"kind": "call", "value": both},
                  tools=offered(rng, tool, weather),
                  calls=[(n, json.dumps(a)) for n, a in both])


def no_call(rng):
    """Tools are there, and nothing to do for them."""
    kind = chosen(rng)
    user = rng.choice(HELLO) + pick(rng, "", "!", ".")
    return sample("tool_unused",
                  user + kind.__name__,
                  user,
                  "The user greets me. No tool is needed.",
                  "Hello! How can I help you?", {"kind": "contains", "value": "help you"},
                  tools=offered(rng,
                                kind(rng)[0], kind))


def calculator_result(rng, args):
    value = str(rng.randint(1, 99999))
    content = pick(rng, value, json.dumps({"result": int(value)}))
    return content, f"{args['expression']} = {value}", {"kind": "number", "value": int(value)}


def weather_result(rng, args):
    city, degrees, sky = list(args.values())[0], rng.randint(-9, 38), rng.choice(CONDITION)
    content = pick(rng, json.dumps({"temperature": degrees, "condition": sky}),
                   f"{degrees} degrees, {sky}",
                   json.dumps({"condition": sky, "temperature": degrees}))
    return content, f"In {city} it is {sky} at {degrees} degrees.", {
        "kind": "contains", "value": f"{sky} at {degrees}"
    }


def result(rng):
    kind, answer_of = pick(rng, (calculator, calculator_result), (weather, weather_result))
    tool, user, args, _ = kind(rng)
    name = tool["function"]["name"]
    content, answer, check = answer_of(rng, args)
    before = [{"role": "user", "content": user},
              {"role": "assistant", "content": "",
               "tool_calls": [(name, json.dumps(args))]}, {"role": "tool", "content": content}]
    return sample("tool_result",
                  user + content,
                  None,
                  "",
                  answer,
                  check,
                  tools=offered(rng, tool, kind),
                  before=before)


def sum_by_tool(rng):
    """Even what it could do alone goes to the calculator when there is one."""
    a, b = rng.randint(10, 999), rng.randint(10, 999)
    tool = calculator(rng)[0]
    name, args = tool["function"]["name"], {"expression": f"{a} + {b}"}
    return sample("tool_call",
                  f"{a}+{b}",
                  ask_sum(rng, a, b),
                  f"This is arithmetic: {a} + {b}. I call {name}.",
                  "", {"kind": "call", "value": [[name, args]]},
                  tools=offered(rng, tool, calculator),
                  calls=[(name, json.dumps(args))])
