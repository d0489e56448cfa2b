"""Run a judge's server that replies immediately."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_LABELS = ("2", "yes", "A", "1")


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """List the model."""
        self._reply({"object": "list", "data": [{"id": "judge", "object": "model", "owned_by": "none"}]})

    def do_POST(self) -> None:
        """Reply "2", with the probabilities of other labels."""
        self.rfile.read(int(self.headers["content-length"]))
        tops = [{"token": label, "logprob": -1.4, "bytes": list(label.encode())} for label in _LABELS]
        said = {"role": "assistant", "content": "2"}
        logprobs = {"content": [{**tops[0], "top_logprobs": tops}]}
        choice = {"index": 0, "finish_reason": "stop", "message": said, "logprobs": logprobs}
        self._reply({"object": "chat.completion", "model": "judge", "choices": [choice]})

    def log_message(self, *_: Any) -> None:
        """Log nothing, because thousands of requests arrive."""

    def _reply(self, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def answering_judge() -> Iterator[str]:
    """Yield the server's base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
