# SPDX-License-Identifier: Apache-2.0
"""A router in front of servers, to test against (standard library only)."""
import json
import os
import re
import signal
import time

from serve_lib import FATHOM, Server, same

ROUTER = os.environ.get("FM_TEST_ROUTER", FATHOM)  # another build of it, say one with sanitizers
FAST = ["--health-check-interval-secs", "0.2", "--health-check-timeout-secs", "1"]


class Worker(Server):
    """A server on a port of its own that can be killed, stopped and started again."""

    def __init__(self, *args, **kinds):
        self.args, self.kinds, self.port = args, kinds, 0
        super().__init__(*args, **kinds)

    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait()
            self.process.stderr.close()

    def again(self):
        """The same server at the same address."""
        port = self.port
        super().__init__(*self.args, "--port", str(port), **self.kinds)
        same(self.port, port)


class Router(Server):
    """Everything a Server is, answered by workers behind it."""
    is_router = True

    def __init__(self, workers, *args, fast=FAST, launcher=(), program=ROUTER):
        urls = [word for w in workers for word in ("--worker", w.url())]
        self.workers = workers
        self.start([*launcher, program, "route", "--port", "0", *urls, *fast, *args])
        if workers:
            self.wait_up(len(workers))

    def table(self):
        return json.loads(self.get("/workers"))["workers"]

    def wait_up(self, n, seconds=30):
        end = time.time() + seconds
        while time.time() < end:
            if sum(w["is_healthy"] and not w["draining"] for w in self.table()) >= n:
                return
            time.sleep(0.02)
        raise AssertionError(f"fewer than {n} workers are up: {self.table()}")

    def count(self, name):
        """A metric of the router itself, summed over workers."""
        text = self.get("/metrics").decode()
        found = re.findall(rf"^fathom_router:{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.M)
        assert found, name
        return sum(map(float, found))

    def metric(self, name):
        """Of the servers, summed."""
        return sum(w.metric(name) for w in self.workers)
