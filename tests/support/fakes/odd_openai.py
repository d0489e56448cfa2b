"""An OpenAI-compatible server that behaves as real ones only do on bad days: it answers what it is told to."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Any, Self

HANG_UP = b""
"""A reply that closes the connection instead. One that says ``connection: close`` does so when it is written."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One request.

    Attributes:
        path: As sent.
        headers: Lower-case names.
        body: JSON; None for GET.
    """

    path: str
    headers: Mapping[str, str]
    body: Any


def reply(status: int, body: object = None, **headers: str) -> bytes:
    """Bytes of an HTTP reply; `body` is sent as it is where it is bytes, as JSON otherwise."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def completion(
    text: str | Sequence[object] | None,
    tops: Sequence[Mapping[str, float]] | None = None,
    *,
    finish: str = "stop",
    apart: Mapping[str, str] = MappingProxyType({}),
    **usage: int,
) -> bytes:
    """A chat completion.

    Args:
        text: What it says, or its parts.
        tops: For each token the log probabilities by text, the token itself first; None: the server gives none.
        finish: Its finish_reason.
        apart: What the message has beside its text, thoughts for instance.
        usage: Counts of tokens; without any, the reply has no usage.
    """
    content = [
        {
            "token": next(iter(top)),
            "logprob": next(iter(top.values())),
            "top_logprobs": [{"token": token, "logprob": logprob} for token, logprob in top.items()],
        }
        for top in tops or ()
    ]
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text, **apart},
        "logprobs": None if tops is None else {"content": content},
    }
    counted = {"usage": usage} if usage else {}
    return reply(200, {"object": "chat.completion", "choices": [choice], **counted})


@dataclass
class OddServer:
    """`async with OddServer() as server: server.url`.

    Attributes:
        owner: `owned_by` in its list of models; a server of its own where it is empty has no such list.
        answers: Replies to the next completions, the first first; the last one stays.
        heard: Completions that were asked for.
        listed: How often the list of models was asked for.
        models: What that is answered with, where it is not the list.
        gate: Completions wait for it.
        hung_up: Requests whose sender closed the connection before the answer.
    """

    owner: str = "somebody"
    answers: list[bytes | Callable[[Heard], bytes]] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    listed: int = 0
    models: bytes | None = None
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: int = 0
    url: str = ""
    port: int = 0
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self.gate.set()
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.set()
        await self.stop()

    async def start(self) -> None:
        """Listens; on the port it had before, if it had one."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    async def stop(self) -> None:
        """Listens no more; connections that are open break."""
        assert self._server is not None
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def __post_init__(self) -> None:
        self._connections: set[asyncio.Task[None]] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        heard = Heard(first.split()[1], headers, json.loads(body) if body else None)
        answer = await self._completion(heard, reader) if heard.body is not None else self._models()
        writer.write(answer)
        await writer.drain()
        return bool(answer) and b"connection: close" not in answer[:200]

    def _models(self) -> bytes:
        self.listed += 1
        if self.models is not None:
            return self.models
        return reply(200, {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": self.owner}]})

    async def _completion(self, heard: Heard, reader: asyncio.StreamReader) -> bytes:
        self.heard.append(heard)
        if not self.gate.is_set():
            waiting = asyncio.ensure_future(self.gate.wait())
            gone = asyncio.ensure_future(reader.read(1))
            await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                waiting.cancel()
                self.hung_up += 1
                raise ConnectionError
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)  # else the next request finds it still reading
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, bytes) else answer(heard)
