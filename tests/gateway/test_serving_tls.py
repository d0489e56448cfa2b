"""A gateway over TLS: bodies of any size come whole, also on a kept connection."""

import asyncio
import ssl
import subprocess
from pathlib import Path

import httpx2
import pytest
from tests.support.servers.gateway import SCORE
from tests.support.servers.wire import Wire

from gradewire_gateway.serving import bind, serve
from gradewire_gateway.settings import Bounds, GatewaySettings, ListenSettings, UpstreamSettings


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    made = (
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        cert,
        "-subj",
        "/CN=localhost",
    )
    subprocess.run((*made, "-addext", "subjectAltName=IP:127.0.0.1"), check=True, capture_output=True)
    return cert, key


async def test_bodies_come_whole_over_tls(wire: Wire, certificate: tuple[str, str]) -> None:
    cert, key = certificate
    upstream = UpstreamSettings(target=f"127.0.0.1:{wire.port}")
    settings = GatewaySettings(upstream=upstream, listen=ListenSettings(port=0, cert=cert, key=key), bounds=Bounds())
    listening, stop = bind(settings.listen), asyncio.Event()
    address = f"https://127.0.0.1:{listening.getsockname()[1]}"

    async def until_stopped() -> None:
        await stop.wait()

    running = asyncio.create_task(serve(settings, listening, until=until_stopped))
    async with httpx2.AsyncClient(base_url=address, verify=ssl.create_default_context(cafile=cert)) as client:
        for size in (1, 5_000, 20_000, 100_000):
            item = {"references": ["x" * size], "prediction": "x" * size}
            reply = await client.post(SCORE, json={"items": [item], "metrics": [{"exactMatch": {}}]})
            assert reply.status_code == 200, reply.text
            assert reply.json()["items"][0]["results"][0]["score"] == 1
    stop.set()
    await running
