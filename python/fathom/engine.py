# SPDX-License-Identifier: Apache-2.0
"""An engine: a loaded model that answers prompts, many at a time."""
import collections
import ctypes as c
import json
import threading
from dataclasses import dataclass, field

from . import library as L
from .library import check, lib


@dataclass
class Piece:
    """What one step adds to an answer."""
    text: str
    token: int  # -1: none
    logprob: float = None
    finish_reason: str = None  # None: more to come


@dataclass
class Answer:
    text: str = ""
    tokens: list = field(default_factory=list)
    logprobs: list = None
    finish_reason: str = None
    prompt_tokens: int = 0
    cached_tokens: int = 0

    def json(self):
        return json.loads(self.text)


_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty",
             "ignore_eos")


def _sampling(max_tokens, min_tokens, seed, logprobs, logit_bias, stop_token_ids, more):
    s = lib.fm_sampling_default()
    s.max_new_tokens, s.min_new_tokens, s.logprobs = max_tokens, min_tokens, int(bool(logprobs))
    if seed is not None:
        s.has_seed, s.seed = 1, seed
    for name, value in more.items():
        if name not in _SAMPLING:
            raise TypeError(f"there is no argument {name!r}")
        setattr(s, name, int(value) if name in ("top_k", "ignore_eos") else float(value))
    if logit_bias:
        s.bias = (L.LogitBias * len(logit_bias))(*[L.LogitBias(int(i), float(b)) for i, b in logit_bias.items()])
        s.n_bias = len(logit_bias)
    if len(stop_token_ids) > len(s.stop_id):
        raise ValueError(f"at most {len(s.stop_id)} stop_token_ids")
    for i, token in enumerate(stop_token_ids):
        s.stop_id[i] = token
    s.n_stop_id = len(stop_token_ids)
    return s


def _schema_text(schema):
    if hasattr(schema, "model_json_schema"):  # a Pydantic model
        schema = schema.model_json_schema()
    return schema if isinstance(schema, str) else json.dumps(schema)


class Engine:
    """Opens a model.  Options are those of the command line, with _ for -: max_total_tokens=4096."""

    def __init__(self, model_path, **options):
        self._handle, self._lock, self._inbox = c.c_void_p(), threading.RLock(), {}
        handle = c.c_void_p()
        check(lib.fm_options_create(c.byref(handle)))
        try:
            for name, value in dict(options, model_path=model_path).items():
                if value is False or value is None:
                    continue
                text = json.dumps(value) if isinstance(value, dict) else str(value)
                check(lib.fm_options_set(handle, name.replace("_", "-").encode(),
                                         None if value is True else text.encode()))
            check(lib.fm_engine_open(c.byref(self._handle), handle))
        finally:
            lib.fm_options_destroy(handle)

    def close(self):
        with self._lock:
            handle, self._handle = self._handle, c.c_void_p()
            lib.fm_engine_close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def _engine(self):
        if not self._handle:
            raise L.FathomError(-1, "the engine is closed")
        return self._handle

    @property
    def facts(self):
        """The model as a dictionary: architecture, vocab, context, kv_tokens, ..."""
        facts = L.Facts()
        check(lib.fm_engine_facts(self._engine, c.byref(facts)))
        values = {name: getattr(facts, name) for name, _ in L.Facts._fields_}
        return {k: v.decode() if isinstance(v, bytes) else v for k, v in values.items()}

    def tokenize(self, text, bos=False, plain=False):
        data, n = text.encode(), c.c_size_t()
        flags = (L.TOKENIZE_BOS if bos else 0) | (L.TOKENIZE_PLAIN if plain else 0)
        room = len(data) + 8  # no token is shorter than a byte
        out = (c.c_int32 * room)()
        check(lib.fm_engine_tokenize(self._engine, data, len(data), flags, out, room, c.byref(n)))
        return list(out[:n.value])

    def detokenize(self, tokens, keep_special=False):
        ids, n = (c.c_int32 * len(tokens))(*tokens), c.c_size_t()
        check(lib.fm_engine_detokenize(self._engine, ids, len(tokens), keep_special, None, 0, c.byref(n)))
        out = c.create_string_buffer(n.value + 1)
        check(lib.fm_engine_detokenize(self._engine, ids, len(tokens), keep_special, out, n.value, c.byref(n)))
        return out.raw[:n.value].decode()

    def chat_prompt(self, messages, thinking=False):
        """The prompt of a conversation (BOS included), and whether its answer begins inside <think>."""
        own = (L.Message * len(messages))(*[L.Message(m["role"].encode(), (m.get("content") or "").encode())
                                            for m in messages])
        n, thinks = c.c_size_t(), c.c_int()
        ask = lambda out, room: check(lib.fm_engine_chat_prompt(self._engine, own, len(messages), thinking, out, room,
                                                                c.byref(n), c.byref(thinks)))
        ask(None, 0)
        out = c.create_string_buffer(n.value + 1)
        ask(out, n.value)
        return out.raw[:n.value].decode(), bool(thinks.value)

    def _grammar(self, json_schema, regex, ebnf):
        given = [(kind, text) for kind, text in ((L.JSON_SCHEMA, json_schema), (L.REGEX, regex), (L.EBNF, ebnf))
                 if text is not None]
        if len(given) > 1:
            raise ValueError("json_schema, regex and ebnf exclude each other")
        handle = c.c_void_p()
        if given:
            kind, text = given[0]
            data = (_schema_text(text) if kind == L.JSON_SCHEMA else text).encode()
            check(lib.fm_engine_grammar(c.byref(handle), self._engine, kind, data, len(data)))
        return handle

    def _submit(self, prompt, after=None, *, max_tokens=128, min_tokens=0, seed=None, stop=(), logprobs=False,
                logit_bias=None, stop_token_ids=(), json_schema=None, regex=None, ebnf=None, keep_special=False,
                priority=0, **more):
        stop = [stop] if isinstance(stop, str) else list(stop)
        p, answer = L.Prompt(), c.c_uint64()
        p.sampling = _sampling(max_tokens, min_tokens, seed, logprobs, logit_bias, list(stop_token_ids), more)
        if isinstance(prompt, str):
            data = prompt.encode()
            p.text, p.text_len = data, len(data)
        else:
            p.token, p.n_token = (c.c_int32 * len(prompt))(*prompt), len(prompt)
        p.stop, p.n_stop = (c.c_char_p * len(stop))(*[s.encode() for s in stop]), len(stop)
        p.keep_special, p.priority = int(keep_special), priority
        p.grammar_after = after
        with self._lock:
            grammar = self._grammar(json_schema, regex, ebnf)
            p.grammar = grammar
            try:
                check(lib.fm_engine_submit(self._engine, c.byref(p), c.byref(answer)))
            finally:
                lib.fm_grammar_release(grammar)
            self._inbox[answer.value] = collections.deque()
        return answer.value

    def _deliver(self):
        """One step for all answers under way; events go to the inbox of their answer."""
        if lib.fm_engine_busy(self._engine):
            check(lib.fm_engine_step(self._engine))
        ev = L.Event()
        while lib.fm_engine_poll(self._handle, c.byref(ev)):
            if ev.id in self._inbox:
                text = c.string_at(ev.text, ev.text_len).decode() if ev.text_len else ""
                piece = Piece(text, ev.token, ev.logprob, L.FINISH[ev.finish])
                self._inbox[ev.id].append((piece, ev.n_prompt, ev.n_cached))

    def _events(self, answer):
        try:
            while True:
                with self._lock:
                    inbox = self._inbox[answer]
                    if not inbox:
                        self._deliver()
                    if not inbox and not lib.fm_engine_busy(self._handle):
                        raise L.FathomError(-1, "the answer ended without an end")
                    found = inbox.popleft() if inbox else None
                if found:
                    yield found
                    if found[0].finish_reason:
                        return
        finally:
            with self._lock:
                self._inbox.pop(answer, None)
                if self._handle:
                    lib.fm_engine_cancel(self._handle, answer)

    def _collect(self, answer, logprobs):
        out = Answer(logprobs=[] if logprobs else None)
        for piece, n_prompt, n_cached in self._events(answer):
            out.text += piece.text
            if piece.token >= 0:
                out.tokens.append(piece.token)
                if logprobs:
                    out.logprobs.append(piece.logprob)
            out.finish_reason, out.prompt_tokens, out.cached_tokens = piece.finish_reason, n_prompt, n_cached
        return out

    def generate(self, prompt, **ask):
        """An Answer to a prompt: text, or a list of token ids.  A list of texts is computed together and
        gives a list of answers.

        temperature, top_p, top_k, min_p, penalties, seed, max_tokens, stop, logprobs, logit_bias; json_schema (text,
        dictionary or Pydantic model), regex or ebnf for the form of the answer."""
        if isinstance(prompt, (list, tuple)) and prompt and isinstance(prompt[0], str):
            answers = [self._submit(one, **ask) for one in prompt]
            return [self._collect(one, ask.get("logprobs")) for one in answers]
        return self._collect(self._submit(prompt, **ask), ask.get("logprobs"))

    def stream(self, prompt, **ask):
        """Pieces of an answer as they come.  A stream that is closed early cancels its answer."""
        answer = self._submit(prompt, **ask)
        return (piece for piece, _, _ in self._events(answer))

    def _chat(self, messages, thinking, ask):
        text, thinks = self.chat_prompt(messages, thinking)
        return self._submit(self.tokenize(text), b"</think>" if thinks else None, **ask)

    def chat(self, messages, thinking=False, **ask):
        """An Answer to a conversation: a list of {"role": ..., "content": ...}.  Where the model thinks first,
        the form of an answer begins behind </think>."""
        return self._collect(self._chat(messages, thinking, ask), ask.get("logprobs"))

    def chat_stream(self, messages, thinking=False, **ask):
        answer = self._chat(messages, thinking, ask)
        return (piece for piece, _, _ in self._events(answer))
