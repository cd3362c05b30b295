# SPDX-License-Identifier: Apache-2.0
"""A small HTTP client on asyncio that can read slowly, leave early and see every byte that comes."""
import asyncio
import json
import socket


class Lost(Exception):
    """The connection ended, or nothing came, before the reply was complete."""


class Reply:
    def __init__(self, status, headers, link):
        self.status, self.headers, self.link = status, headers, link

    async def pieces(self):
        """The body as it comes."""
        read = self.link.read
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(await self.link.line(), 16):
                yield await read(size)
                await read(2)
            await self.link.line()
        elif "content-length" in self.headers:
            left = int(self.headers["content-length"])
            while left:
                piece = await read(min(left, self.link.gulp))
                left -= len(piece)
                yield piece
        else:
            while piece := await self.link.reader.read(self.link.gulp):
                yield piece

    async def all(self):
        return b"".join([p async for p in self.pieces()])

    async def events(self):
        """Server-sent events, or lines of JSON, as texts."""
        end = b"\n" if "ndjson" in self.headers["content-type"] else b"\n\n"
        left = b""
        async for piece in self.pieces():
            *whole, left = (left + piece).split(end)
            for event in whole:
                yield event.decode()
        if left:
            raise Lost(f"a stream ends inside an event: {left[:100]!r}")


class Link:
    """One connection.  `slow`: seconds before each read of at most `gulp` bytes."""

    def __init__(self, port, slow=0.0, gulp=1 << 16):
        self.port, self.slow, self.gulp = port, slow, gulp
        self.reader = self.writer = None

    async def open(self):
        sock = socket.socket()
        if self.slow:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        self.reader, self.writer = await asyncio.open_connection(sock=sock, limit=4096 if self.slow else 1 << 20)

    async def ask(self, method, path, body, headers):
        """Sends a request; the reply's head."""
        try:
            if not self.writer:
                await self.open()
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            lines = [f"{method} {path} HTTP/1.1", "Host: soak", f"Content-Length: {len(data)}", *(f"{k}: {v}" for k, v in headers.items())]
            self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
            await self.writer.drain()
            status = int((await self.line()).split()[1])
            head = {}
            while line := await self.line():
                name, value = line.split(":", 1)
                head[name.lower()] = value.strip()
            return Reply(status, head, self)
        except (OSError, IndexError) as e:
            raise Lost(repr(e)) from e

    async def line(self):
        try:
            return (await self.reader.readuntil(b"\r\n"))[:-2].decode("latin-1")
        except (OSError, asyncio.IncompleteReadError) as e:
            raise Lost(repr(e)) from e

    async def read(self, n):
        out = b""
        while len(out) < n:
            if self.slow:
                await asyncio.sleep(self.slow)
            try:
                piece = await self.reader.read(min(n - len(out), self.gulp))
            except OSError as e:
                raise Lost(repr(e)) from e
            if not piece:
                raise Lost("the connection ended inside a reply")
            out += piece
        return out

    async def rest(self):
        """What still comes before the server closes: nothing, if every reply came once."""
        try:
            return await self.reader.read(1 << 16)
        except OSError:
            return b""

    def close(self, reset=False):
        if self.writer:
            if reset:
                self.writer.transport.abort()
            else:
                self.writer.close()
        self.reader = self.writer = None
