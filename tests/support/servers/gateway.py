"""A gateway on a real socket in the test's own event loop, in front of any gRPC server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

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
