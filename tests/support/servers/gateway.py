"""A gateway on a real socket in the test's own event loop, in front of any gRPC server."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Self

import grpc
import grpc.aio
import httpx2

from gradewire_gateway.serving import bind, serve
from gradewire_gateway.settings import Bounds, GatewaySettings, ListenSettings, RewardPostSettings, UpstreamSettings

JSON: Final = {"content-type": "application/json"}
LINES: Final = {"content-type": "application/x-ndjson"}
SCORE: Final = "/gradewire.v1.Scoring/Score"
SCORE_STREAM: Final = "/gradewire.v1.Scoring/ScoreStream"


@dataclass(frozen=True)
class RunningGateway:
    """A gateway that answers, and a client of it."""

    port: int
    client: httpx2.AsyncClient

    async def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        """Sends JSON; `_` in the name of a header stands for `-`."""
        given = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, (bytes, str)):
            return await self.client.post(path, content=body, headers=given)
        return await self.client.post(path, json=body, headers=given)

    async def in_flight(self) -> int:
        """Requests in flight beside the one that asks, which comes from a host of its own."""
        transport = httpx2.AsyncHTTPTransport(local_address="127.0.0.9")
        async with httpx2.AsyncClient(base_url=self.client.base_url, transport=transport, timeout=30) as client:
            lines = (await client.get("/metrics")).text.splitlines()
        (count,) = (line.split()[1] for line in lines if line.startswith("gradewire_gateway_requests_in_flight "))
        return int(float(count)) - 1

    async def until_in_flight(self, count: int, *, within_s: float = 60) -> None:
        """Waits until so many are."""
        async with asyncio.timeout(within_s):
            while await self.in_flight() != count:  # noqa: ASYNC110 - the gateway tells nobody
                await asyncio.sleep(0.02)


class RawConnection:
    """A connection on which any bytes can be sent, from any address of this machine, and little is received unread."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int, host: str = "127.0.0.1") -> Self:
        """Connects from `host`."""
        client = socket.socket()
        client.setblocking(False)  # noqa: FBT003 - the name of the parameter is the function's
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.bind((host, 0))
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
        return cls(*await asyncio.open_connection(sock=client, limit=1024))

    async def send(self, data: bytes) -> None:
        """Sends all of it."""
        self._writer.write(data)
        await self._writer.drain()

    async def send_if_open(self, data: bytes) -> None:
        """Sends all of it, unless the gateway has closed the connection."""
        with suppress(ConnectionError):
            await self.send(data)

    async def post(self, path: str, body: bytes, *headers: str, length: int | None = None) -> None:
        """Sends a request; with `length` its body is said to have so many bytes."""
        kind = LINES if path == SCORE_STREAM else JSON
        lines = (f"POST {path} HTTP/1.1", "host: localhost", f"content-type: {kind['content-type']}", *headers)
        await self.send("\r\n".join((*lines, f"content-length: {length or len(body)}", "", "")).encode() + body)

    async def status(self) -> int:
        """Reads a reply with a length; returns its status, 0 where the connection is closed instead."""
        try:
            head = (await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 30)).decode().lower()
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0
        length = re.search(r"content-length: (\d+)", head)
        await self._reader.readexactly(int(length[1]) if length else 0)
        return int(head.split()[1])

    async def begun(self) -> None:
        """Waits for the first byte of a reply and takes it."""
        await asyncio.wait_for(self._reader.read(1), 60)

    async def ended(self) -> bool:
        """Waits for the gateway to close it, however; what comes before is not kept."""
        with suppress(ConnectionError):
            while await asyncio.wait_for(self._reader.read(1 << 16), 30):
                pass
        return True

    async def close(self) -> None:
        """Closes it at once."""
        self._writer.transport.abort()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


@asynccontextmanager
async def connections(port: int) -> AsyncIterator[Callable[..., Awaitable[RawConnection]]]:
    """Gives what opens a connection, from the host that it is told; closes all in the end."""
    made: list[RawConnection] = []

    async def connect(host: str = "127.0.0.1") -> RawConnection:
        made.append(await RawConnection.open(port, host))
        return made[-1]

    try:
        yield connect
    finally:
        for connection in made:
            await connection.close()


@asynccontextmanager
async def gateway_over_method(name: str, handler: Any) -> AsyncIterator["RunningGateway"]:
    """Runs one in front of a gRPC server whose only method is `name` of Scoring."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("gradewire.v1.Scoring", {name: handler})])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with gateway_over(f"127.0.0.1:{port}") as gateway:
            yield gateway
    finally:
        await server.stop(None)


@asynccontextmanager
async def gateway_over(
    target: str,
    *,
    names: tuple[str, ...] = (),
    private: bool = False,
    metrics: bool = True,
    page: bool = True,
    rewards: RewardPostSettings | None = None,
    **bounds: Any,
) -> AsyncIterator[RunningGateway]:
    """Runs one in front of the gRPC server at `target`; `bounds` are fields of `Bounds`."""
    settings = GatewaySettings(
        upstream=UpstreamSettings(target=target, private=private),
        listen=ListenSettings(port=0, names=names),
        bounds=Bounds(**bounds),
        rewards=rewards or RewardPostSettings(),
        metrics=metrics,
        page=page,
    )
    listening = bind(settings.listen)
    port = listening.getsockname()[1]
    stop = asyncio.Event()

    async def until_stopped() -> None:
        await stop.wait()

    running = asyncio.create_task(serve(settings, listening, until=until_stopped))
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client:
            yield RunningGateway(port, client)
    finally:
        stop.set()
        await running
