"""A chat endpoint on this machine that answers as it is told."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Stub(ThreadingHTTPServer):
    """``answer(texts, number)`` returns the reply to a pair, or a (status, body, headers), or raises to hang up.

    ``asked`` holds every request: headers and body.
    """

    daemon_threads = True

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.asked, self.lock = answer, [], threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def pairs(self):
        """Return the requested pairs in order."""
        return [tuple(json.loads(body["messages"][1]["content"]).values()) for _, body in self.asked]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.asked.append((dict(self.headers) | {"path": self.path}, body))
            number = len(self.server.asked)
        texts = tuple(json.loads(body["messages"][1]["content"]).values())
        answer = self.server.answer(texts, number)
        if answer is None:
            time.sleep(0.3)  # longer than a test waits
            return
        if isinstance(answer, str):
            usage = {"prompt_tokens": 70, "completion_tokens": 2}
            answer = 200, {"choices": [{"message": {"role": "assistant", "content": answer}}], "usage": usage}, {}
        status, content, headers = answer
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def stub(answer):
    """A running stub."""
    server = Stub(answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
