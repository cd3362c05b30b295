# SPDX-License-Identifier: Apache-2.0
"""Loads for comparing routers, and a client that costs the machine little: one thread, and what is not needed
during the run is parsed after it.  Requests are sent at their times, whether earlier ones were answered or not."""
import asyncio
import itertools
import json
import random
import time

WORDS = "time year people way day man thing woman life child world school state family student group country".split()


def words(rng, n):
    return " ".join(rng.choices(WORDS, k=n))


# --- what is asked -----------------------------------------------------------

def popularity(n, zipf):
    """How often each of n prefixes is asked for: the k-th in proportion to k^-zipf."""
    return [(i + 1) ** -zipf for i in range(n)]


def prefixes(rng, o):
    """Lengths are log-uniform between words / spread and words * spread."""
    lengths = [o.prefix_words * o.prefix_spread ** rng.uniform(-1, 1) for _ in range(o.groups)]
    return [words(rng, round(n)) for n in lengths]


def shuffled_groups(seed, o):
    """`questions` prompts with each of `groups` prefixes, in random order."""
    rng = random.Random(seed)
    asked = [p for p in prefixes(rng, o) for _ in range(o.questions)]
    rng.shuffle(asked)
    return [f"{p} {words(rng, o.question_words)}" for p in asked]


def shared_prefix(seed, o):
    """Prompts with one of `groups` prefixes each, as (seconds, text); arrivals are a Poisson process."""
    rng = random.Random(seed)
    asked = rng.choices(prefixes(rng, o), popularity(o.groups, o.zipf), k=o.prompts)
    times = itertools.accumulate(rng.expovariate(o.rate) for _ in asked)
    return [(at, f"{p} {words(rng, o.question_words)}") for at, p in zip(times, asked)]


# --- one request -------------------------------------------------------------

class Line(asyncio.Protocol):
    """A connection that carries one request at a time."""

    def __init__(self):
        self.done = None

    def connection_made(self, transport):
        self.transport = transport

    def send(self, request):
        self.parts, self.first, self.tail = [], 0, b""
        self.done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.done

    def data_received(self, data):
        self.parts.append(data)
        if not self.first and b"data: " in data:
            self.first = time.perf_counter()
        self.tail = (self.tail + data)[-7:]
        if self.tail == b"\r\n0\r\n\r\n" and not self.done.done():
            self.done.set_result(b"".join(self.parts))

    def connection_lost(self, why):
        if self.done and not self.done.done():
            self.done.set_exception(OSError(f"the connection was lost: {why}: {b''.join(self.parts)[:500]}"))


class Client:
    def __init__(self, port, o):
        self.port, self.n_output, self.kept, self.idle = port, o.output, o.kept, []

    def request(self, text):
        body = json.dumps({"text": text, "stream": True, "sampling_params": {
            "max_new_tokens": self.n_output, "temperature": 0, "ignore_eos": True}}).encode()
        return b"POST /generate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
            len(body), body)

    async def ask(self, request, due):
        """When it was due, seconds from then to the first event, and the reply."""
        if self.idle:
            line = self.idle.pop()
        else:
            _, line = await asyncio.get_running_loop().create_connection(Line, "127.0.0.1", self.port)
        reply = await line.send(request)
        if self.kept:
            self.idle.append(line)
        else:
            line.transport.close()
        return due, line.first - due, reply


def events(reply):
    assert b" 200 OK" in reply[:20], reply[:1000]
    return [json.loads(line[6:]) for line in reply.split(b"\n") if line.startswith(b"data: {")]


def result(due, ttft, reply):
    """Prompt tokens, cached ones, seconds to the first token, when it was due."""
    info = events(reply)[0]["meta_info"]
    return info["prompt_tokens"], info["cached_tokens"], ttft, due


# --- runs --------------------------------------------------------------------

async def send_arrivals(port, arrivals, o):
    client = Client(port, o)
    ready = [(at, client.request(text)) for at, text in arrivals]
    began, tasks = time.perf_counter() + 0.1, []
    for at, request in ready:
        await asyncio.sleep(began + at - time.perf_counter())
        tasks.append(asyncio.create_task(client.ask(request, began + at)))
    return [result(*got) for got in await asyncio.gather(*tasks)]


async def send_always(port, texts, o):
    """`clients` of them, each of which asks again as soon as it has its answer."""
    client = Client(port, o)
    todo, got = iter([client.request(text) for text in texts]), []

    async def ask_on():
        for request in todo:
            got.append(await client.ask(request, time.perf_counter()))

    await asyncio.gather(*(ask_on() for _ in range(o.clients)))
    return [result(*reply) for reply in got]


async def converse(client, text, o, rng, due):
    """One conversation: each turn is the whole text so far and a further question."""
    got = []
    for _ in range(o.turns):
        text += "\n" + words(rng, o.question_words)
        await asyncio.sleep(max(0, due - time.perf_counter()))
        got.append(await client.ask(client.request(text), due))
        text += events(got[-1][2])[-1]["text"]
        due = time.perf_counter() + rng.expovariate(1 / o.think)
    return got


async def send_conversations(port, seed, o):
    """Conversations begin at the times of a Poisson process, each with one of `groups` system prompts."""
    rng = random.Random(seed)
    n, client = o.prompts // o.turns, Client(port, o)
    openings = rng.choices(prefixes(rng, o), popularity(o.groups, o.zipf), k=n)
    times = itertools.accumulate(rng.expovariate(o.rate / o.turns) for _ in openings)
    began = time.perf_counter() + 0.1
    got = await asyncio.gather(*(converse(client, text, o, random.Random(rng.random()), began + at)
                                 for at, text in zip(times, openings)))
    return [result(*turn) for turns in got for turn in turns]


def run(port, seed, o):
    """All requests of one round; the same ones for the same seed."""
    send = (send_always(port, shuffled_groups(seed, o), o) if o.clients else
            send_conversations(port, seed, o) if o.turns > 1 else
            send_arrivals(port, shared_prefix(seed, o), o))
    began = time.perf_counter()
    return asyncio.run(send), time.perf_counter() - began
