#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""soak.py PROGRAM SECONDS RANKS...: a server under twice its capacity; see tests/soak.sh.

For each number of ranks: a server is started, its capacity is measured with clients that wait for their answers, then
clients of all kinds arrive at twice that rate, whatever the server does, while a rank is stopped and continued every
few seconds.  Answers are compared with those an undisturbed server of one rank gave one at a time.
"""
import asyncio
import os
import random
import re
import signal
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e")]

from awake import Awake  # noqa: E402
from client import Link  # noqa: E402
from dialects import BAD, cases  # noqa: E402
from serve_lib import Server  # noqa: E402
from traffic import Traffic  # noqa: E402

TINY = ["--model-path", os.path.join(HERE, "..", "..", "models", "fathom-tiny"), "--deterministic", "--quiet"]
SIZE = ["--max-total-tokens", "32768", "--max-running-requests", "24", "--max-queued-requests", "48"]
CLIENTS = 32  # that measure the capacity
PAUSE = (0.2, 2.5)  # seconds a rank is stopped; --comm-silence is 5
BETWEEN = (3, 12)  # seconds between two pauses


def server(ranks):
    launcher = [] if ranks == 1 else [os.path.join(HERE, "..", "rank", "mpirun.sh"), str(ranks)]
    layout = [] if ranks == 1 else ["--tp", str(ranks)]
    return Server(*SIZE, *layout, "--log-requests", model=TINY, launcher=launcher)


def processes(root):
    """pid: name, of a process and all below it."""
    below, name = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                text = f.read()
        except OSError:
            continue
        name[int(pid)] = text[text.index("(") + 1:text.rindex(")")]
        below.setdefault(int(text[text.rindex(")") + 2:].split()[1]), []).append(int(pid))
    out, todo = {}, [root]
    while todo:
        pid = todo.pop()
        out[pid] = name.get(pid)
        todo += below.get(pid, [])
    return out


def rank_pids(s, ranks):
    """The server's processes, rank 0 first."""
    program = os.path.basename(sys.argv[1])[:15]  # as much as the kernel keeps of a name
    pids = [p for p, name in processes(s.process.pid).items() if name == program]
    if len(pids) != ranks:
        raise SystemExit(f"{len(pids)} processes are called {program}, expected {ranks}")
    return sorted(pids, key=rank_of)


def rank_of(pid):
    with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as f:
        found = re.search(r"OMPI_COMM_WORLD_RANK=(\d+)", f.read())
    return int(found[1]) if found else 0


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])


def slope(samples):
    """KiB per minute, by least squares over (seconds, KiB)."""
    x, y = zip(*samples)
    return statistics.linear_regression(x, y).slope * 60


async def reference(clock):
    """What an undisturbed server answers: every case, then all that is refused."""
    with server(1) as s:
        t, answers, refusals = Traffic(s.port, cases(), {}, {}, 0, clock), {}, {}
        t.judge = lambda which, name, said: answers.__setitem__(which, said)
        for which in range(len(t.cases)):
            await t.whole("reference", which)
        for which, (method, path, body, headers) in enumerate(BAD):
            link = Link(s.port)
            r = await link.ask(method, path, body, headers)
            refusals[which] = (r.status, (await r.all()).decode())
            link.close()
        t.close()
        if t.book.wrong or any(400 > status for status, _ in refusals.values()):
            raise SystemExit(f"the undisturbed server: {t.book.wrong} {refusals}")
    return answers, refusals


async def capacity(t, seconds):
    """Answers a second to clients that ask again as soon as they have one."""
    end = t.clock.now() + seconds

    async def one(kind):
        n = 0
        while t.clock.now() < end:
            await t.begin(kind)
            n += 1
        return n
    began = t.clock.now()
    counts = await asyncio.gather(*(one("stream" if i % 3 else "whole") for i in range(CLIENTS)))
    return sum(counts) / (t.clock.now() - began)


async def arrive(t, rate, end):
    """Clients at random times, `rate` of them a second, until `end`."""
    due = t.clock.now()
    while due < end:
        due += t.rng.expovariate(rate)
        await asyncio.sleep(max(0, due - t.clock.now()))
        t.begin()


async def pauses(clock, pids, end):
    """Stops one rank after another for a while; how often."""
    rng, n = random.Random(5), 0
    while clock.now() + BETWEEN[1] + PAUSE[1] < end:
        await asyncio.sleep(rng.uniform(*BETWEEN))
        pid = rng.choice(pids)
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(rng.uniform(*PAUSE))
        finally:
            os.kill(pid, signal.SIGCONT)
        n += 1
    return n


async def watch_memory(clock, pids, end):
    began, out = clock.now(), []
    while clock.now() < end:
        out.append((clock.now() - began, sum(map(rss_kib, pids))))
        await asyncio.sleep(1)
    return out


async def drain(t, s, pids):
    """SIGTERM while streams are read: they end as they should, then the server does."""
    before = t.book.done["right"] + t.book.done["refused"]
    asked = [t.begin("stream") for _ in range(8)]
    while s.metric("num_running_reqs") == 0 and not all(a.done() for a in asked):
        await asyncio.sleep(0.01)
    os.kill(pids[0], signal.SIGTERM)
    await t.hurry()
    return t.book.done["right"] + t.book.done["refused"] - before


async def one_phase(ranks, seconds, answers, refusals, clock):
    """A row of the table, and what went wrong."""
    s = server(ranks)
    try:
        pids = rank_pids(s, ranks)
        t = Traffic(s.port, cases(), answers, refusals, ranks, clock)
        slept = clock.slept
        able = await capacity(t, min(20, seconds / 6))
        measured = sum(t.book.sent.values())
        end = clock.now() + seconds
        memory = asyncio.ensure_future(watch_memory(clock, pids, end))
        paused = asyncio.ensure_future(pauses(clock, pids, end))
        await arrive(t, 2 * able, end)
        samples, n_pause = await memory, await paused
        await t.hurry()
        t.close()
        offered = (sum(t.book.sent.values()) - measured) / seconds
        s.wait_idle(30)
        book = t.book
        if used := s.metric("num_used_tokens"):
            book.violation("leaked", f"{used} tokens of the cache are still held")
        for which in range(len(t.cases)):
            await t.client("whole", which)
        t.close()
        if (n := await drain(t, s, pids)) != 8:
            book.violation("lost", f"{8 - n} of 8 streams did not end after SIGTERM")
        s.process.communicate(timeout=60)
        if sum(book.done.values()) < sum(book.sent.values()):
            book.violation("lost", f"{sum(book.sent.values())} requests, {sum(book.done.values())} ends")
        if s.process.returncode:
            book.violation("ended", f"exit status {s.process.returncode}")
    finally:
        s.process.kill()
    settled = [x for x in samples if x[0] > seconds / 5]
    row = {"ranks": ranks, "seconds": round(seconds), "capacity": able, "offered": offered, "pauses": n_pause, "book": book, "slept": clock.slept - slept,
           "rss": (settled[0][1], settled[-1][1]), "slope": slope(settled)}
    grown = row["slope"] * (settled[-1][0] - settled[0][0]) / 60
    if grown > 4096 + 0.03 * settled[0][1]:
        book.violation("leaked", f"memory grew by {grown:.0f} KiB")
    return row


def print_table(rows):
    def line(what, *values):
        print(f"{what:34}" + "".join(f"{v:>16}" for v in values))
    line("", *(f"{r['ranks']} rank{'s' * (r['ranks'] > 1)}" for r in rows))
    line("seconds", *(r["seconds"] for r in rows))
    if any(r["slept"] for r in rows):
        line("  and the whole job was stopped for", *(f"{r['slept']:.0f}" for r in rows))
    line("capacity, answers/s", *(f"{r['capacity']:.1f}" for r in rows))
    line("offered, requests/s", *(f"{r['offered']:.1f}" for r in rows))
    line("rank stopped and continued", *(r["pauses"] for r in rows))
    books = [r["book"] for r in rows]
    line("requests", *(sum(b.sent.values()) for b in books))
    for kind in sorted({k for b in books for k in b.sent}):
        line("  " + kind, *(b.sent[kind] for b in books))
    for end in ("right", "beginning right", "refusal right", "refused", "left", "frozen"):
        line(end, *(b.done[end] for b in books))
    line("cut by /abort_request", *(b.cut for b in books))
    for end in ("lost", "doubled", "wrong", "leaked", "ended"):
        line(end, *(b.done[end] for b in books))
    line("reply begins after, median ms", *(f"{1e3 * statistics.median(b.first):.0f}" for b in books))
    line("  at most, s", *(f"{max(b.first):.1f}" for b in books))
    line("memory after a fifth, MiB", *(f"{r['rss'][0] / 1024:.1f}" for r in rows))
    line("  at the end, MiB", *(f"{r['rss'][1] / 1024:.1f}" for r in rows))
    line("  slope, KiB/min", *(f"{r['slope']:.1f}" for r in rows))


async def main():
    seconds, ranks = float(sys.argv[2]), [int(x) for x in sys.argv[3:]] or [1, 2]
    clock = Awake()
    answers, refusals = await reference(clock)
    rows = []
    for n in ranks:
        rows.append(await one_phase(n, seconds / len(ranks), answers, refusals, clock))
        print(f"{n} ranks: {sum(rows[-1]['book'].sent.values())} requests, {len(rows[-1]['book'].wrong)} violations", flush=True)
    print_table(rows)
    wrong = [f"{r['ranks']} ranks: {w}" for r in rows for w in r["book"].wrong]
    print(f"{len(wrong)} violations", *wrong[:20], sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
