# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium over the DevTools protocol, with nothing but the standard library."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


def find_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class WebSocket:
    """Client side of RFC 6455, as much as DevTools needs: text frames, whole or in pieces."""

    def __init__(self, url):
        host, path = url[len("ws://"):].split("/", 1)
        name, port = host.split(":")
        self.sock = socket.create_connection((name, int(port)), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.sock.recv(4096)
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        assert b" 101 " in head.split(b"\r\n")[0], head

    def take(self, n):
        while len(self.buffer) < n:
            more = self.sock.recv(1 << 16)
            if not more:
                raise ConnectionError("the browser closed the connection")
            self.buffer += more
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        n = len(data)
        if n < 126:
            size = bytes([0x80 | n])
        else:
            size = b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n)
        repeated = (mask * (n // 4 + 1))[:n]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(n, "big")
        self.sock.sendall(b"\x81" + size + mask + masked)

    def receive(self):
        message = b""
        while True:
            first, second = self.take(2)
            n = second & 127
            if n == 126:
                n = struct.unpack(">H", self.take(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self.take(8))[0]
            payload = self.take(n)
            if first & 15 in (0, 1):
                message += payload
                if first & 128:
                    return message.decode()


class Browser:
    """One page in one browser; use as a context manager."""

    def __init__(self, chromium, width=1280, height=860):
        self.profile = tempfile.mkdtemp(prefix="fathom-page-")
        self.process = subprocess.Popen(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--mute-audio",
             "--hide-scrollbars", f"--user-data-dir={self.profile}", "--remote-debugging-port=0",
             f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.next_id, self.problems, self.requests = 0, [], []
        self.socket = WebSocket(self.page_address())
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def page_address(self):
        port_file = os.path.join(self.profile, "DevToolsActivePort")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if os.path.exists(port_file) and os.path.getsize(port_file):
                with open(port_file) as f:
                    port = f.readline().strip()
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as r:
                    pages = [t for t in json.load(r) if t["type"] == "page"]
                if pages:
                    return pages[0]["webSocketDebuggerUrl"]
            time.sleep(0.1)
        raise TimeoutError("chromium did not start")

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"].get("exception", {}).get("description") or str(params))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, **params):
        self.next_id += 1
        self.socket.send(json.dumps({"id": self.next_id, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.next_id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.note(message)

    def eval(self, script):
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True,
                           userGesture=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", script))
        return result["result"].get("value")

    def wait(self, script, seconds=15):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.eval(f"Boolean({script})"):
                return
            time.sleep(0.05)
        raise TimeoutError(f"never true: {script}")

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait(f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def key(self, name, modifiers=0):
        code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39, "ArrowUp": 38, "ArrowDown": 40}[name]
        text = {"text": "\r"} if name == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code,
                      modifiers=modifiers, **text)

    def click(self, selector):
        box = self.eval(f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                        " return [r.left + r.width / 2, r.top + r.height / 2, r.width]; })()")
        assert box[2] > 0, f"{selector} is not on the screen"
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if phone else 1, mobile=phone)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
