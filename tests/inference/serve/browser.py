"""Headless Chromium, driven over a pipe by its own protocol; nothing but the standard library is needed.

Source: the DevTools protocol, --remote-debugging-pipe: JSON messages with a zero byte after each, on descriptors 3, 4.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]


class Page:
    """One tab."""

    def __init__(self, write, read):
        self._write, self._read, self._last, self._session = write, read, 0, None
        self.messages = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        """Send a command and return its result; events on the way are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        self._write.flush()
        while True:
            answer = json.loads(self._one())
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]
            self.messages.append(answer)

    def _one(self):
        content = bytearray()
        while (byte := self._read.read(1)) != b"\0":
            assert byte, "Chromium has gone"
            content += byte
        return bytes(content)

    def run(self, script):
        """The value of a script, which may be a promise."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, address, ready):
        self.send("Page.navigate", url=address)
        return self.wait(ready)

    def wait(self, script):
        """Wait until a script gives something true, and return it."""
        end = time.monotonic() + 30
        while not (value := self.run(script)):
            assert time.monotonic() < end, script
            time.sleep(0.05)
        return value

    def type(self, text):
        self.send("Input.insertText", text=text)

    def press(self, key, code, modifiers=0):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                modifiers=modifiers,
                **text,
            )

    def screenshot(self):
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    def complaints(self):
        """What went wrong in the page so far: exceptions, and errors in its log."""
        self.run("0")
        thrown = [m["params"] for m in self.messages if m.get("method") == "Runtime.exceptionThrown"]
        logged = [m["params"]["entry"] for m in self.messages if m.get("method") == "Log.entryAdded"]
        return thrown + [entry for entry in logged if entry["level"] == "error"]


@contextmanager
def browser(width=900, height=1000):
    """A tab of a browser of its own."""
    to_browser, from_browser = os.pipe(), os.pipe()

    def place():
        os.dup2(to_browser[0], 3)
        os.dup2(from_browser[1], 4)

    for end in (*to_browser, *from_browser):
        os.set_inheritable(end, True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", f"--window-size={width},{height}"]
        running = subprocess.Popen(
            command, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            with os.fdopen(to_browser[1], "wb") as write, os.fdopen(from_browser[0], "rb") as read:
                yield Page(write, read)
        finally:
            running.terminate()
            running.wait(10)
