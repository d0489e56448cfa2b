"""Run a judge's server that replies at once, or after a fixed time: `python -m benchmarks.judges.instant_server`.

It is so small that it is never the slowest part of a measurement. It prints its base URL, and runs until it is stopped.
Every answer is the label "correct" and the end, each with 20 log probabilities, as vLLM writes them. With
`max_tokens` 1, it is only the label.
"""

import argparse
import asyncio
import json
import re
import time
from collections import deque
from typing import Any, Final

import uvloop
from typing_extensions import override

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD_END: Final = b"\r\n\r\n"
_OTHERS: Final = (
    *(" incorrect", " incomplete", " right", " wrong", " Correct", " partially", " not", " a", " the", " correctly"),
    *(" complete", " in", " mostly", " accurate", " Incorrect", " considered", " consistent", " also", " only"),
)


def _step(token: str) -> dict[str, Any]:
    tops = [{"token": each, "logprob": -0.5 - 1.4 * at} for at, each in enumerate((token, *_OTHERS))]
    listed = [{**top, "bytes": list(str(top["token"]).encode())} for top in tops]
    return {**listed[0], "top_logprobs": listed}


def _reply(body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data)


def completion(tokens: int = 2) -> bytes:
    """Return the bytes of the answer, which has one or two tokens."""
    told_apart: dict[str, Any] = {"refusal": None, "reasoning_content": None, "tool_calls": []}
    message = {"role": "assistant", "content": " correct", **told_apart}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": {"content": [_step(" correct"), _step("<|im_end|>")][:tokens]},
        "finish_reason": "stop" if tokens > 1 else "length",
        "stop_reason": None,
    }
    usage = {"prompt_tokens": 400, "total_tokens": 402, "completion_tokens": 2, "prompt_tokens_details": None}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "judge", "choices": [choice]}
    return _reply({**body, "usage": usage, "system_fingerprint": None})


def _body_bytes(head: bytes) -> int:
    length = _LENGTH.search(head)
    return int(length[1]) if length else 0


MODELS: Final = _reply({"object": "list", "data": [{"id": "judge", "object": "model", "owned_by": "vllm"}]})


class InstantJudge(asyncio.Protocol):
    """One connection, which may send several requests before the first answer."""

    answer: Final = completion()
    short_answer: Final = completion(1)

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._received = bytearray()
        self._due: deque[tuple[float, bytes]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.WriteTransport = transport  # type: ignore[assignment] # a socket can be written to

    @override
    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        while (head := received.find(_HEAD_END)) >= 0:
            end = head + len(_HEAD_END) + _body_bytes(bytes(received[: head + 2]))
            if len(received) < end:
                return
            asked = received.startswith(b"POST")
            answer = self.short_answer if received.find(b'"max_tokens":1,', head, end) > 0 else self.answer
            del received[:end]
            if not asked:
                self._transport.write(MODELS)
            elif self._delay_s:
                self._due.append((time.monotonic() + self._delay_s, answer))
                self._wait()
            else:
                self._transport.write(answer)

    def _wait(self) -> None:
        if self._timer is None and self._due:
            self._timer = asyncio.get_running_loop().call_at(self._due[0][0], self._send)

    def _send(self) -> None:
        self._timer = None
        _, answer = self._due.popleft()
        if not self._transport.is_closing():
            self._transport.write(answer)
            self._wait()


async def serve(delay_s: float) -> None:
    """Print the base URL, and serve until this is cancelled."""
    server = await asyncio.get_running_loop().create_server(lambda: InstantJudge(delay_s), "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    uvloop.run(serve(parser.parse_args().delay_ms / 1000))


if __name__ == "__main__":
    main()
