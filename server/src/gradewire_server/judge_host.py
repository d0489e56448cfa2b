"""The process that runs the judges of several server processes: `python -m gradewire_server.judge_host FD`.

FD is its end of the supervisor's link. It takes next to no memory before a judge is asked for: each judge computes in a
worker process of its own, as those of a server alone do.
"""

import asyncio
import logging
import signal
import socket
import sys
from contextlib import AsyncExitStack
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics

from gradewire_server.judges.backend import JudgeTelemetry
from gradewire_server.judges.factory import NoJudges
from gradewire_server.judges.local.backend import EmbeddedJudges
from gradewire_server.judges.shared.host import JudgeHost
from gradewire_server.phase import Phase, Stop
from gradewire_server.processes.this_process import Reporting, StartMessage, ThisProcess
from gradewire_server.rpc.log import configure_log
from gradewire_server.settings.server import Settings
from gradewire_server.settings.surface import SettingsError
from gradewire_server.tracing import open_call_tracer

_log = logging.getLogger(__name__)


class _Readiness(Reporting):
    def __init__(self) -> None:
        self.phase = Phase.LOADING

    @property
    def ready(self) -> bool:
        return self.phase is Phase.SERVING

    def report(self) -> dict[str, Any]:
        """Whether judges can answer is said by those who ask them."""
        return {"phase": self.phase.value, "degraded": [], "judging": None}


async def host_judges(settings: Settings, member: ThisProcess, stop: Stop) -> None:
    """Runs judges until `stop` is requested.

    Args:
        settings: All of them. Where these ask for no judges of this machine any more, there are none.
        member: This process beside the server processes.
        stop: How to ask for the end.

    Raises:
        RuntimeError: Nobody can reach it at its address.
    """
    judge = settings.engine.judge
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    readiness = _Readiness()
    async with AsyncExitStack() as stack:
        tracer = await stack.enter_async_context(open_call_tracer(settings.tracing.settings(), registry))
        await stack.enter_async_context(member.joined(registry, readiness))
        telemetry = JudgeTelemetry(registry)
        judges = NoJudges() if judge.embedded is None else EmbeddedJudges(judge.embedded, telemetry)
        host = JudgeHost(judges, max_queue_items=judge.max_queue_items, tracer=tracer)
        stack.push_async_callback(host.stop)
        await host.start(member.place.judges)
        readiness.phase = Phase.SERVING
        _log.info("the judge host takes questions")
        await stop.requested.wait()
        readiness.phase = Phase.DRAINING


def main() -> int:
    """Runs judges until the supervisor stops it or is gone; returns the exit code."""
    start = StartMessage.read()
    try:
        settings = Settings.load(**start.values)
    except SettingsError as error:
        sys.stderr.write(f"the judge host cannot start: {error}\n")
        return 2
    flood = configure_log(settings.log.level)
    disable_created_metrics()  # type: ignore[no-untyped-call]
    stop = Stop()
    member = ThisProcess(start.place, socket.socket(fileno=int(sys.argv[1])), stop)

    async def until_signal() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.request)
        await host_judges(settings, member, stop)

    try:
        asyncio.run(until_signal())
    finally:
        flood.tell(at_once=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
