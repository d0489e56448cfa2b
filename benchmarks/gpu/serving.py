"""Items a second of a server in a process of its own."""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from gradewire import AsyncClient

CONCURRENT: Final = 8
ITEMS_A_CALL: Final = 256
START_S: Final = 120
STOP_S: Final = 30
WORDS: Final = ("red", "dog", "house", "seven", "paris", "runs", "under", "blue", "river", "green", "walks", "stone")


def items_per_s(repository: Path, flags: dict[str, str], seconds: float) -> dict[str, Any]:
    """Starts a server, has it score answers that it has never seen for `seconds`, and stops it.

    Raises:
        RuntimeError: It does not start.
    """
    every = {"port": "0", "http-port": "0", "disk-directory": "", "drain-s": "0", "model-repository": str(repository)}
    program = "from gradewire.cli import main; main()"
    command = [sys.executable, "-c", program, "serve"]
    command += [text for name, value in {**every, **flags}.items() for text in (f"--{name}", value)]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            if not line:
                server.wait(STOP_S)
                log.seek(0)
                raise RuntimeError(f"the server does not start: {log.read()[-300:]}")
            port = line.rsplit(":", 1)[1].split()[0]
            return asyncio.run(_measure(f"127.0.0.1:{port}", seconds))
        finally:
            server.terminate()
            try:
                server.wait(STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()


async def _measure(address: str, seconds: float) -> dict[str, Any]:
    async with AsyncClient(address) as client:
        await client.score(_items("warm up", 8), "sbert")
        ends_s = time.perf_counter() + seconds
        began_s, scored, failed = time.perf_counter(), 0, 0

        async def call_on(caller: int) -> None:
            nonlocal scored, failed
            calls = 0
            while time.perf_counter() < ends_s:
                report = await client.score(_items(f"{caller} {calls}", ITEMS_A_CALL), "sbert")
                good = sum(item.scores["sbert"].score is not None for item in report)
                scored += good
                failed += ITEMS_A_CALL - good
                calls += 1

        await asyncio.gather(*(call_on(caller) for caller in range(CONCURRENT)))
        return {"items/s": round(scored / (time.perf_counter() - began_s)), "failed": failed}


def _items(seed: str, count: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)  # noqa: S311 - texts, no secrets
    return [
        {
            "question": "what is it?",
            "references": [" ".join(rng.choices(WORDS, k=3)) + f" {seed} {number}"],
            "prediction": " ".join(rng.choices(WORDS, k=20)) + f" {seed} {number}",
        }
        for number in range(count)
    ]
