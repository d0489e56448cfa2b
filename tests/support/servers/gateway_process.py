"""A gateway in a process of its own, which tells how late its event loop was and how much memory it has taken."""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.event_loop import taking_turns

from gradewire_gateway.serving import bind, new_event_loop, serve
from gradewire_gateway.settings import Bounds, GatewaySettings, ListenSettings, RewardPostSettings, UpstreamSettings

_ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Strain:
    """What a gateway had to bear since it was asked before.

    Attributes:
        late_s: The longest that a turn of its event loop was late.
        peak_bytes: The most memory that it and its children had, without what was asked before.
    """

    late_s: float
    peak_bytes: int


class GatewayProcess:
    """`with GatewayProcess(target) as gateway: gateway.port`, in front of the gRPC server at `target`.

    Args:
        rewards: Fields of `RewardPostSettings`.
        asks_tokens: Whether the server is known to ask for tokens.
        bounds: Fields of `Bounds`.
    """

    def __init__(self, target: str, *, rewards: Any = None, asks_tokens: bool = False, **bounds: Any) -> None:
        given = {"target": target, "asks_tokens": asks_tokens, "rewards": rewards or {}, "bounds": bounds}
        self._command = [sys.executable, "-m", __name__, json.dumps(given)]
        self.port = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.port = json.loads(self._line())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def strain(self) -> Strain:
        """Waits for the event loop to answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return Strain(*json.loads(self._line()))

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


async def _main(given: dict[str, Any]) -> None:
    settings = GatewaySettings(
        upstream=UpstreamSettings(target=given["target"], asks_tokens=given["asks_tokens"]),
        listen=ListenSettings(port=0),
        bounds=Bounds(**given["bounds"]),
        rewards=RewardPostSettings(**given["rewards"]),
    )
    listening = bind(settings.listen)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def until_closed() -> None:
        async with taking_turns() as turns:
            os.write(1, b"%d\n" % listening.getsockname()[1])
            while await reader.readline():
                os.write(1, b"%s\n" % json.dumps([turns.latest_s, _peak_bytes()]).encode())
                _forget_peak()
                turns.latest_s = 0.0

    await serve(settings, listening, until=until_closed)


def _processes() -> list[Path]:
    """This process and its children."""
    children = [each.read_text().split() for each in Path("/proc/self/task").glob("*/children")]
    return [Path("/proc/self"), *(Path("/proc") / pid for found in children for pid in found)]


def _forget_peak() -> None:
    for process in _processes():
        (process / "clear_refs").write_text("5")


def _peak_bytes() -> int:
    statuses = [(process / "status").read_text() for process in _processes()]
    return sum(int(status.partition("VmHWM:")[2].split()[0]) << 10 for status in statuses)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_main(json.loads(sys.argv[1])))
