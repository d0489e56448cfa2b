"""A chat server over a real socket that counts its requests and states the tokens of each."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class CountingServer(ThreadingHTTPServer):
    """An OpenAI-compatible server.

    Attributes:
        asked: The number of questions so far.
        label_of: Maps the text of the last user turn to the label that the server writes.
        written: The number of tokens that each answer counts as written. It counts 100 as read.
    """

    def __init__(self, label_of: Callable[[str], str], written: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = 0
        self.label_of = label_of
        self.written = written


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CountingServer

    def do_GET(self) -> None:
        self._reply({"data": [{"id": "m", "owned_by": "somebody"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked += 1
        shown = next(each["content"] for each in reversed(body["messages"]) if each["role"] == "user")
        label = self.server.label_of(shown)
        top: dict[str, Any] = {"token": label, "logprob": -0.01}
        choice = {
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": label},
            "logprobs": {"content": [{**top, "top_logprobs": [top]}]},
        }
        usage = {"prompt_tokens": 100, "completion_tokens": self.server.written}
        self._reply({"choices": [choice], "usage": usage})

    def _reply(self, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def counting_server(label_of: Callable[[str], str], *, written: int) -> Iterator[CountingServer]:
    """Run a server while the block runs."""
    with CountingServer(label_of, written) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
