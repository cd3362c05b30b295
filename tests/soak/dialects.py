# SPDX-License-Identifier: Apache-2.0
"""The questions of the soak in six dialects, and what an answer says whichever way it came.

An answer is {"choices": [[text, why it ended], ...], "tokens": generated}, the same for a whole reply and for the events
of a stream, so that both are compared with one reference.
"""
import json

PROMPTS = [
    "What is 27 + 48?", "How many r's are in strawberry?", "Sort: 9 4 17 2", "Spell the word garden.",
    "Reverse the word window.", "Tell me a short story about a fox.",
    "Read this first. " + "The sea is deep and the boat is small. " * 30 + "What is 31 + 12?",
    "Read this first. " + "The sea is deep and the boat is small. " * 30 + "What is the capital of France?",
]
SAMPLING = [{"temperature": 0}, {"temperature": 0.9, "top_p": 0.95, "seed": 7}, {"temperature": 1.2, "seed": 11}]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
          "required": ["name", "age"], "additionalProperties": False}
TOKENS = 32


class Ended(Exception):
    """A stream that does not end as its dialect says."""


def need(holds, what):
    if not holds:
        raise Ended(what)


def data_of(events, kinds=False):
    """The JSON of server-sent events, [DONE] as it is."""
    out = []
    for block in events:
        lines = block.split("\n")
        need(lines[-1].startswith("data: ") and len(lines) == 1 + kinds, f"no event: {block[:200]!r}")
        out.append(lines[-1][6:] if lines[-1] == "data: [DONE]" else json.loads(lines[-1][6:]))
    return out


def until_done(events):
    """Without the closing [DONE], which is there once, at the end."""
    out = data_of(events)
    need(out and out[-1] == "[DONE]" and "[DONE]" not in out[:-1], "not ended by one [DONE]")
    return out[:-1]


def error_of(event):
    return event.get("error") if isinstance(event, dict) else None


class Chat:
    path = "/v1/chat/completions"

    def body(self, prompt, sampling, n=1):
        return {"messages": [{"role": "user", "content": prompt}], "max_tokens": TOKENS, "n": n, **sampling}

    def as_stream(self, body):
        return dict(body, stream=True, stream_options={"include_usage": True})

    def piece(self, choice, key):
        part = choice[key]
        return (part.get("reasoning_content") or "") + "|" + (part.get("content") or "")

    def whole(self, r):
        return r["id"], {"choices": [[self.piece(c, "message"), c["finish_reason"]] for c in r["choices"]],
                         "tokens": r["usage"]["completion_tokens"]}

    def streamed(self, events, part=False):
        events = data_of(events) if part else until_done(events)
        thought, said, why, tokens = {}, {}, {}, None
        for e in events:
            for c in e["choices"]:
                i, d = c["index"], c["delta"]
                need(i not in why, "a piece after the end of its answer")
                thought[i] = thought.get(i, "") + (d.get("reasoning_content") or "")
                said[i] = said.get(i, "") + (d.get("content") or "")
                if c["finish_reason"]:
                    why[i] = c["finish_reason"]
            tokens = e["usage"]["completion_tokens"] if e.get("usage") else tokens
        ids = {e["id"] for e in events}
        need(len(ids) == 1, f"events of several answers: {ids}")
        return ids.pop(), {"choices": [[thought[i] + "|" + said[i], why.get(i)] for i in sorted(said)], "tokens": tokens}


class Completions:
    path = "/v1/completions"

    def body(self, prompt, sampling, n=1):
        return {"prompt": prompt, "max_tokens": TOKENS, "n": n, **sampling}

    as_stream = Chat.as_stream

    def whole(self, r):
        return r["id"], {"choices": [[c["text"], c["finish_reason"]] for c in r["choices"]], "tokens": r["usage"]["completion_tokens"]}

    def streamed(self, events, part=False):
        events = data_of(events) if part else until_done(events)
        said, why, tokens = {}, {}, None
        for e in events:
            for c in e["choices"]:
                need(c["index"] not in why, "a piece after the end of its answer")
                said[c["index"]] = said.get(c["index"], "") + c["text"]
                if c["finish_reason"]:
                    why[c["index"]] = c["finish_reason"]
            tokens = e["usage"]["completion_tokens"] if e.get("usage") else tokens
        ids = {e["id"] for e in events}
        need(len(ids) == 1, f"events of several answers: {ids}")
        return ids.pop(), {"choices": [[said[i], why.get(i)] for i in sorted(said)], "tokens": tokens}


class Generate:
    path = "/generate"

    def body(self, prompt, sampling, n=1):
        s = {{"seed": "sampling_seed"}.get(k, k): v for k, v in sampling.items()}
        return {"text": prompt, "sampling_params": {"max_new_tokens": TOKENS, "n": n, **s}}

    def as_stream(self, body):
        return dict(body, stream=True)

    def one(self, r):
        why = r["meta_info"]["finish_reason"]
        return [r["text"], why and why["type"]]

    def whole(self, r):
        many = r if isinstance(r, list) else [r]
        return many[0]["meta_info"]["id"], {"choices": [self.one(x) for x in many],
                                            "tokens": sum(x["meta_info"]["completion_tokens"] for x in many)}

    def streamed(self, events, part=False):
        events = data_of(events) if part else until_done(events)
        last = {}
        for e in events:  # each repeats the text so far
            i = e.get("index", 0)
            need(i not in last or (e["text"].startswith(last[i]["text"]) and not last[i]["meta_info"]["finish_reason"]),
                 "an event that does not go on from the one before")
            last[i] = e
        many = [last[i] for i in sorted(last)]
        need(many, "no event")
        return many[0]["meta_info"]["id"], {"choices": [self.one(x) for x in many],
                                            "tokens": sum(x["meta_info"]["completion_tokens"] for x in many)}


class Messages:
    path = "/v1/messages"

    def body(self, prompt, sampling, n=1):
        return {"messages": [{"role": "user", "content": prompt}], "max_tokens": TOKENS, **sampling}

    as_stream = Generate.as_stream

    def whole(self, r):
        text = "|".join(b.get("thinking", "") + b.get("text", "") for b in r["content"])
        return r["id"], {"choices": [[text, r["stop_reason"]]], "tokens": r["usage"]["output_tokens"]}

    def streamed(self, events, part=False):
        events = data_of(events, kinds=True)
        kinds = [e["type"] for e in events]
        need(kinds and kinds[0] == "message_start" and kinds.count("message_start") == 1, "not one message_start")
        need(part or (kinds[-1] == "message_stop" and kinds.count("message_stop") == 1), "not one message_stop at the end")
        blocks, why, tokens = [], None, None
        for e in events:
            if e["type"] == "content_block_start":
                blocks.append("")
            elif e["type"] == "content_block_delta":
                d = e["delta"]
                blocks[-1] += d.get("thinking", "") + d.get("text", "")
            elif e["type"] == "message_delta":
                need(why is None, "two ends")
                why, tokens = e["delta"]["stop_reason"], e["usage"]["output_tokens"]
        return events[0]["message"]["id"], {"choices": [["|".join(blocks), why]], "tokens": tokens}


class Responses:
    path = "/v1/responses"

    def body(self, prompt, sampling, n=1):
        return {"input": prompt, "max_output_tokens": TOKENS, "store": False, **sampling}

    as_stream = Generate.as_stream

    def whole(self, r):
        text = "|".join("".join(p["text"] for p in o["content"]) for o in r["output"])
        return r["id"], {"choices": [[text, r["status"]]], "tokens": r["usage"]["output_tokens"]}

    def streamed(self, events, part=False):
        events = data_of(events, kinds=True)
        need([e["sequence_number"] for e in events] == list(range(len(events))), "events out of order")
        parts = []
        for e in events:
            if e["type"] == "response.content_part.added":
                parts.append("")
            elif e["type"] in ("response.output_text.delta", "response.reasoning_text.delta"):
                parts[-1] += e["delta"]
        text = "|".join(parts)
        name = events[0]["response"]["id"]
        if part:
            return name, {"choices": [[text, None]], "tokens": None}
        need(events[-1]["type"] in ("response.completed", "response.incomplete", "response.cancelled", "response.failed"), "no end")
        last, said = self.whole(events[-1]["response"])
        need(last == name and (said["choices"][0][0] == text), "the last event says something else than those before")
        return name, said


class Ollama:
    path = "/api/chat"

    def body(self, prompt, sampling, n=1):
        return {"messages": [{"role": "user", "content": prompt}], "options": {"num_predict": TOKENS, **sampling}, "stream": False}

    as_stream = Generate.as_stream

    def piece(self, r):
        m = r["message"]
        return m.get("thinking") or "", m.get("content") or ""

    def whole(self, r):
        return None, {"choices": [["|".join(self.piece(r)), r["done_reason"]]], "tokens": r["eval_count"]}

    def streamed(self, events, part=False):
        lines = [json.loads(x) for x in events]
        need(part or (lines and lines[-1]["done"]), "not ended by done")
        need(not any(x["done"] for x in lines[:-1]), "a line behind the last one")
        pieces = [self.piece(x) for x in lines]
        text = "".join(p[0] for p in pieces) + "|" + "".join(p[1] for p in pieces)
        last = lines[-1] if lines else {}
        return None, {"choices": [[text, last.get("done_reason")]], "tokens": last.get("eval_count")}


DIALECTS = [Chat(), Completions(), Generate(), Messages(), Responses(), Ollama()]


def cases():
    """(dialect, body): every dialect with every prompt, sampled and greedy; some with two answers or a schema."""
    out = []
    for k, d in enumerate(DIALECTS):
        for p, prompt in enumerate(PROMPTS):
            n = 2 if d.path in ("/v1/chat/completions", "/v1/completions", "/generate") and p % 4 == 1 else 1
            out.append((d, d.body(prompt, SAMPLING[(k + p) % len(SAMPLING)], n)))
    completions, generate = DIALECTS[1:3]
    out.append((completions, dict(completions.body("A person:", SAMPLING[0]), json_schema=SCHEMA)))
    body = generate.body("A person:", SAMPLING[1])
    body["sampling_params"]["json_schema"] = json.dumps(SCHEMA)
    out.append((generate, body))
    return out


# What is no request: method, path, body, headers.  The reply is compared with an undisturbed server's as well.
BAD = [
    ("POST", "/v1/chat/completions", b"{", {}),
    ("POST", "/v1/chat/completions", b"[]", {}),
    ("POST", "/v1/chat/completions", b'{"messages": []}', {}),
    ("POST", "/v1/chat/completions", b'{"messages": [{"role": "user"}]}', {}),
    ("POST", "/v1/chat/completions", b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}', {}),
    ("POST", "/v1/completions", b'{"prompt": 5}', {}),
    ("POST", "/v1/completions", b'{"prompt": "a", "max_tokens": -1}', {}),
    ("POST", "/v1/completions", b'{"prompt": "a", "regex": "("}', {}),
    ("POST", "/generate", b'{"text": "' + b"a b " * 4000 + b'"}', {}),
    ("POST", "/generate", b'{"input_ids": [99999999]}', {}),
    ("POST", "/v1/messages", b'{"messages": [{"role": "user", "content": 5}], "max_tokens": 4}', {}),
    ("POST", "/v1/responses", b'{"input": [5]}', {}),
    ("POST", "/api/chat", b'{"messages": "no"}', {}),
    ("POST", "/generate", b"\x1f\x8b\x08\x00", {"Content-Encoding": "gzip"}),
    ("POST", "/generate", b'{"text": "a"}', {"Origin": "https://elsewhere.example"}),
    ("GET", "/nowhere", b"", {}),
    ("DELETE", "/generate", b"", {}),
]
