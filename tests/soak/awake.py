# SPDX-License-Identifier: Apache-2.0
"""Time without the pauses of the whole job (a suspended machine, a batch system that makes room): clients, server and
clock stand still together, so a wait across such a pause says nothing about the server."""
import asyncio
import time

TICK = 0.25
NAP = 5  # seconds without a tick: the job itself was stopped


class Awake:
    def __init__(self):
        self.slept = 0.0  # seconds of all pauses
        self.n_nap = 0
        self.last = time.monotonic()
        self.task = asyncio.ensure_future(self.tick())

    async def tick(self):
        while True:
            await asyncio.sleep(TICK)
            self.look()

    def look(self):
        now = time.monotonic()
        if now - self.last > NAP:
            self.slept += now - self.last
            self.n_nap += 1
        self.last = now

    def now(self):
        self.look()
        return time.monotonic() - self.slept

    async def wait(self, task, seconds):
        """Whether it ended within so many seconds awake; cancelled if not."""
        end = self.now() + seconds
        while not task.done() and (left := end - self.now()) > 0:
            await asyncio.wait([task], timeout=min(left, 2))
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return False
        return True
