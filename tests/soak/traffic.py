# SPDX-License-Identifier: Apache-2.0
"""Clients of every kind against one server; each reply is judged when it has come.

A request ends in one way that its kind allows, or is a violation: an answer that is not the undisturbed server's is
`wrong`, a reply that does not come or breaks off is `lost`, one that comes twice, or to another's request, is `doubled`.
"""
import asyncio
import collections
import json
import random
import time

from client import Link, Lost
from dialects import BAD, Ended, error_of

PATIENCE = 120  # seconds a client waits for all of a reply
KEPT = 20  # seconds an idle connection is used again; the server closes it after 75

# What clients do, and how many of a hundred.
KINDS = {"whole": 22, "stream": 36, "slow": 6, "kept": 4, "cancel": 8, "leave": 8, "leave at once": 4, "stall": 2, "bad": 10}


class Book:
    """What was asked and what became of it."""

    def __init__(self):
        self.sent = collections.Counter()
        self.done = collections.Counter()
        self.wrong = []
        self.ids = set()
        self.first = []  # seconds to the head of a reply
        self.cut = 0  # answers that /abort_request ended
        self.serial = 0

    def violation(self, kind, what):
        self.done[kind] += 1
        self.wrong.append(f"{kind}: {what}")


class Traffic:
    def __init__(self, port, cases, answers, refusals, seed, clock):
        self.port, self.cases, self.answers, self.refusals = port, cases, answers, refusals
        self.clock = clock
        self.rng = random.Random(seed)
        self.book = Book()
        self.idle = []  # connections kept open by clients that are done
        self.tasks = set()

    def begin(self, kind=None):
        """One more client, as a task of its own."""
        kind = kind or self.rng.choices(list(KINDS), KINDS.values())[0]
        task = asyncio.ensure_future(self.client(kind))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def client(self, kind, which=None):
        """One request of a kind, for a case or one at random."""
        book = self.book
        book.sent[kind] += 1
        book.serial += 1
        name = f"soak-{id(self):x}-{book.serial}"
        which = self.rng.randrange(len(self.cases)) if which is None else which
        naps = self.clock.n_nap
        task = asyncio.ensure_future(getattr(self, kind.replace(" ", "_"))(name, which))
        try:
            if not await self.clock.wait(task, PATIENCE):
                raise Lost(f"nothing for {PATIENCE} s")
            task.result()
        except Lost as e:
            self.clock.look()
            if self.clock.n_nap > naps:  # client and server were stopped together, for as long as deadlines last
                book.done["frozen"] += 1
            else:
                book.violation("lost", f"{kind}, case {which}: {e}")
        except (Ended, ValueError, KeyError, IndexError, TypeError) as e:
            book.violation("wrong", f"{kind}, case {which}: {e!r}")

    def link(self):
        while self.idle and self.rng.random() < 0.7:
            link, since = self.idle.pop()
            if time.monotonic() - since < KEPT:
                return link
            link.close()
        return Link(self.port)

    async def ask(self, link, name, path, body, method="POST", **headers):
        """The reply, or None where the server is full.  A reply to another's request is a violation."""
        began = time.monotonic()
        r = await link.ask(method, path, body, {"x-request-id": name, **headers})
        self.book.first.append(time.monotonic() - began)
        if r.headers.get("x-request-id") != name:
            self.book.violation("doubled", f"{path}: reply to {r.headers.get('x-request-id')}, asked as {name}")
        if r.status == 429:
            await r.all()
            if "retry-after" not in r.headers:
                raise Ended("429 without Retry-After")
            self.book.done["refused"] += 1
            return None
        return r

    async def part(self, link, last=False):
        """Ends a client's use of a connection: kept for another, or closed, when nothing more may come."""
        if not last:
            self.idle.append((link, time.monotonic()))
            return
        more = await link.rest()
        if more:
            self.book.violation("doubled", f"{len(more)} bytes behind a reply: {more[:80]!r}")
        link.close()

    def judge(self, which, name, said):
        if name is not None:
            if name in self.book.ids:
                self.book.violation("doubled", f"the id {name} came twice")
            self.book.ids.add(name)
        want = self.answers[which]
        if said == want:
            self.book.done["right"] += 1
        else:
            self.book.violation("wrong", f"case {which}: {said}, want {want}")

    def judge_part(self, which, said):
        """A beginning: of each answer, the text so far."""
        for (text, _), (want, _) in zip(said["choices"], self.answers[which]["choices"]):
            if not want.startswith(text.rstrip("|")) and not want.startswith(text):
                self.book.violation("wrong", f"case {which}: {text!r} is no beginning of {want!r}")
                return
        self.book.done["beginning right"] += 1
        if any(why in ("abort", "cancelled") for _, why in said["choices"]):
            self.book.cut += 1

    async def whole(self, name, which):
        dialect, body = self.cases[which]
        last = self.rng.random() < 0.3
        link = self.link()
        r = await self.ask(link, name, dialect.path, body, **({"Connection": "close"} if last else {}))
        if r:
            data = await r.all()
            if r.status != 200:
                raise Ended(f"{r.status}: {data[:300]!r}")
            self.judge(which, *dialect.whole(json.loads(data)))
        await self.part(link, last)

    async def read(self, link, name, which):
        """All of a stream."""
        dialect, body = self.cases[which]
        r = await self.ask(link, name, dialect.path, dialect.as_stream(body))
        if not r:
            return
        events = [e async for e in r.events()]
        if r.status != 200:
            raise Ended(f"{r.status}: {events[:2]}")
        self.judge(which, *dialect.streamed(events))

    async def stream(self, name, which):
        link = self.link()
        await self.read(link, name, which)
        await self.part(link)

    async def slow(self, name, which):
        link = Link(self.port, slow=0.02, gulp=700)
        await self.read(link, name, which)
        link.close()

    async def kept(self, name, which):
        """A response that is stored, read back, and deleted."""
        responses = [i for i, (d, _) in enumerate(self.cases) if d.path == "/v1/responses"]
        which = responses[which % len(responses)]
        dialect, body = self.cases[which]
        link = self.link()
        r = await self.ask(link, name, dialect.path, dict(body, store=True))
        if r:
            reply = json.loads(await r.all())
            self.judge(which, *dialect.whole(reply))
            path = f"{dialect.path}/{reply['id']}"
            r = await self.ask(link, name + "-get", path, b"", "GET")
            if json.loads(await r.all()) != reply:
                self.book.violation("wrong", f"{path} gives something else back")
            r = await self.ask(link, name + "-delete", path, b"", "DELETE")
            if r.status != 200:
                self.book.violation("wrong", f"DELETE {path}: {r.status} {await r.all()!r}")
            await r.all()
        await self.part(link)

    async def cancel(self, name, which):
        """/abort_request from elsewhere while the stream is read: it ends, with a beginning of the answer."""
        dialect, body = self.cases[which]
        link, other = self.link(), Link(self.port)
        r = await self.ask(link, name, dialect.path, dict(dialect.as_stream(body), rid=name))
        if r:
            events, stop = [], self.rng.randrange(1, 12)
            async for e in r.events():
                events.append(e)
                if len(events) == stop:
                    abort = await other.ask("POST", "/abort_request", {"rid": name}, {})
                    await abort.all()
            if not any(error_of(json.loads(e.split("data: ")[-1])) for e in events[:-1] if "error" in e):
                self.judge_part(which, dialect.streamed(events)[1])
            await self.part(link)
        other.close()

    async def leave(self, name, which):
        """A client that goes away in mid-stream."""
        dialect, body = self.cases[which]
        link = Link(self.port)
        r = await self.ask(link, name, dialect.path, dialect.as_stream(body))
        if r:
            events, stop = [], self.rng.randrange(1, 12)
            async for e in r.events():
                events.append(e)
                if len(events) == stop:
                    break
            done = events[-1] == "data: [DONE]"
            self.judge_part(which, dialect.streamed(events, part=not done)[1])
        link.close(reset=self.rng.random() < 0.5)

    async def leave_at_once(self, name, which):
        """A client that goes away before anything came."""
        dialect, body = self.cases[which]
        link = Link(self.port)
        asked = asyncio.ensure_future(link.ask("POST", dialect.path, body, {"x-request-id": name}))
        await asyncio.wait([asked], timeout=self.rng.random() * 0.2)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        link.close(reset=self.rng.random() < 0.5)
        self.book.done["left"] += 1

    async def stall(self, name, which):
        """A client that reads nothing for a while, and then goes away."""
        dialect, body = self.cases[which]
        link = Link(self.port, slow=0.01)
        await link.open()
        data = json.dumps(dialect.as_stream(body)).encode()
        link.writer.write(b"POST %s HTTP/1.1\r\nHost: soak\r\nContent-Length: %d\r\n\r\n" % (dialect.path.encode(), len(data)) + data)
        link.writer.transport.pause_reading()
        await asyncio.sleep(self.rng.random() * 5)
        link.close(reset=True)
        self.book.done["left"] += 1

    async def bad(self, name, which):
        which = self.rng.randrange(len(BAD))
        method, path, body, headers = BAD[which]
        link = Link(self.port)
        r = await self.ask(link, name, path, body, method, Connection="close", **headers)
        if r:
            got = (r.status, (await r.all()).decode())
            if got == self.refusals[which]:
                self.book.done["refusal right"] += 1
            else:
                self.book.violation("wrong", f"bad input {which}: {got}, want {self.refusals[which]}")
            await self.part(link, last=True)
        else:
            link.close()

    async def hurry(self):
        """Waits for every client that is under way."""
        while self.tasks:
            await asyncio.wait(list(self.tasks))

    def close(self):
        while self.idle:
            self.idle.pop()[0].close()
