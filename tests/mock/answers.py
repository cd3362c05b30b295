# SPDX-License-Identifier: Apache-2.0
"""What the mock server answers, token by token, in each API's wire format."""
import re

CONTEXT = 8192  # tokens, of which the mock has one per word
THOUGHT = "The user greets. I should answer briefly, show a list and some code, and stay calm about it."
TALK = """Hello. **Depth** is measured in *fathoms*; one is 1.8288 m.

1. Lower the lead line.
2. Read the mark at the surface.
   - deep six is six fathoms
   - mark twain is two

| mark | fathoms |
|------|--------:|
| twain | 2 |
| three | 3 |

```c
static double metres(double fathoms)
{
    return fathoms * 1.8288; /* a < b && "quoted" */
}
```

Use `metres(2)` for *mark twain*. <b>This is not bold</b>, and 3 * 4 * 5 = 60.
"""


class Reply:
    """The tokens of one answer; subclasses know a wire format."""

    status, message, pace = 200, "", None

    def __init__(self, body, tokens, thoughts=(), n_prompt=8):
        self.body, self.thoughts, self.n_prompt = body, list(thoughts), n_prompt
        self.tokens = self.thoughts + list(tokens)
        self.n_token = len(self.tokens)
        self.finish = "stop"

    def usage(self):
        return {"prompt_tokens": self.n_prompt, "completion_tokens": self.n_token,
                "total_tokens": self.n_prompt + self.n_token,
                "prompt_tokens_details": {"cached_tokens": self.n_prompt // 2}}

    def text(self, start, stop):
        return "".join(self.tokens[start:stop])

    def opening(self):
        return []

    def with_usage(self, events):
        if (self.body.get("stream_options") or {}).get("include_usage"):
            events.append({"choices": [], "usage": self.usage()})
        return events


class Chat(Reply):
    def chunk(self, delta, finish=None):
        return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def opening(self):
        return [self.chunk({"role": "assistant", "content": "", "reasoning_content": None})]

    def piece(self, start, stop):
        k = len(self.thoughts)
        delta = {"reasoning_content": self.text(start, min(stop, k)) or None}
        if stop > k:
            delta["content"] = self.text(max(start, k), stop)
        return self.chunk(delta)

    def closing(self):
        return self.with_usage([self.chunk({}, self.finish)])

    def complete(self):
        k = len(self.thoughts)
        message = {"role": "assistant", "content": self.text(k, self.n_token),
                   "reasoning_content": self.text(0, k) or None}
        return {"choices": [{"index": 0, "message": message, "finish_reason": self.finish}], "usage": self.usage()}


class Calling(Chat):
    """Calls the first tool of the request, its arguments in two pieces."""

    def opening(self):
        name = self.body["tools"][0]["function"]["name"]
        first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": '{"city":'}}
        rest = {"index": 0, "id": None, "function": {"name": None, "arguments": ' "Nome <b>"}'}}
        return [*super().opening(), self.chunk({"tool_calls": [first]}), self.chunk({"tool_calls": [rest]})]


class Breaking(Chat):
    """Stops in the middle with an error event."""

    def closing(self):
        return [{"error": {"message": "the engine ran out of patience", "type": "server_error"}}]


class Completion(Reply):
    def piece(self, start, stop):
        end = self.finish if stop == self.n_token else None
        choice = {"index": 0, "text": self.text(start, stop), "finish_reason": end}
        return {"object": "text_completion", "choices": [choice]}

    def closing(self):
        return self.with_usage([])

    def complete(self):
        return {**self.piece(0, self.n_token), "usage": self.usage()}


class Native(Reply):
    """/generate: events carry the text and ids so far."""

    def piece(self, start, stop):
        end = {"type": self.finish} if stop == self.n_token else None
        return {"text": self.text(0, stop), "output_ids": list(range(stop)),
                "meta_info": {"completion_tokens": stop, "prompt_tokens": self.n_prompt, "cached_tokens": self.n_prompt // 2,
                              "cached_tokens_details": {"device": self.n_prompt // 4, "host": 0, "storage": self.n_prompt // 4},
                              "finish_reason": end}}

    def closing(self):
        return []

    def complete(self):
        return self.piece(0, self.n_token)


class Refusal(Reply):
    def __init__(self, status, message, code=None):
        super().__init__({}, [])
        self.status, self.message, self.code = status, message, code


def counted(n):
    return [f"w{i} " for i in range(n)]


def limit(body, *names):
    for name in names:
        if body.get(name):
            return int(body[name])
    return 0


def chat(body):
    said = body["messages"][-1]["content"]
    n_prompt = sum(len((m["content"] or "").split()) for m in body["messages"])
    if n_prompt > CONTEXT:
        return Refusal(400, f"This model's maximum context length is {CONTEXT} tokens. However, your messages resulted in "
                       f"{n_prompt} tokens. Please reduce the length of the messages.", "context_length_exceeded")
    if body.get("ignore_eos"):
        reply = Chat(body, counted(limit(body, "max_completion_tokens", "max_tokens")), n_prompt=n_prompt)
        reply.finish = "length"
        return reply
    if "refuse" in said:
        return Refusal(400, "messages[0].content: nothing here may be refused")
    if "break" in said:
        return Breaking(body, counted(5), n_prompt=n_prompt)
    if "slow" in said:
        reply = Chat(body, counted(2000), n_prompt=n_prompt)
        reply.pace = 0.02
        return reply
    if body.get("tools") and body["messages"][-1]["role"] == "user":
        reply = Calling(body, [], n_prompt=n_prompt)
        reply.finish = "tool_calls"
        return reply
    if "earlier" in said:
        told = " / ".join(m["role"] + ": " + (m["content"] or "")[:20] for m in body["messages"])
        return Chat(body, re.findall(r"\S+\s*", told), n_prompt=n_prompt)
    return Chat(body, re.findall(r"\s*\S+|\s+$", TALK), re.findall(r"\s*\S+", THOUGHT), n_prompt)


def completion(body):
    prompt = body["prompt"]
    n_prompt = len(prompt if isinstance(prompt, list) else prompt.split())
    reply = Completion(body, counted(limit(body, "max_tokens") or 16), n_prompt=n_prompt)
    reply.finish = "length"
    return reply


def generate(body):
    n = limit(body.get("sampling_params") or {}, "max_new_tokens") or 128
    reply = Native(body, counted(n), n_prompt=len(body.get("input_ids") or (body.get("text") or "").split()))
    reply.finish = "length"
    return reply


def reply_to(path, body):
    make = {"/v1/chat/completions": chat, "/v1/completions": completion, "/generate": generate}.get(path)
    return make(body) if make else None
