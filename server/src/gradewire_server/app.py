"""Puts the server together, starts it and stops it.

Start: listen with health NOT_SERVING, load and warm up, flip. Stop: flip, go on serving through the drain window, take
no more calls, let those in flight finish, close the backends.
"""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

from grpc import aio
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, disable_created_metrics

from gradewire_server.backends import Backends
from gradewire_server.domain.result import Failure
from gradewire_server.requests.dataplane import Dataplane
from gradewire_server.requests.prompts.directory import add_prompts
from gradewire_server.rpc.admission import Admission
from gradewire_server.rpc.calls import Calls
from gradewire_server.rpc.http import HttpSide
from gradewire_server.rpc.lifecycle import Lifecycle
from gradewire_server.rpc.request_log import JsonFormatter, RequestLog
from gradewire_server.rpc.server import Tls, start_server
from gradewire_server.rpc.services import service_handlers
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.scoring import Scorer
from gradewire_server.settings.server import Settings

_log = logging.getLogger(__name__)

_OBSERVE_EVERY_S: Final = 0.25
"""Less than a judge's process takes to come back: who watches health is to see that it was away."""
_QUIET_S: Final = 0.2
"""Nobody has called for so long: callers have noticed."""
_MAX_QUIET_WAIT_S: Final = 3.0
_LAST_WORDS_S: Final = 0.5
"""Time for what is left once our own calls are done: health watchers would wait for ever."""


class Stop:
    """The wish to stop: the first asks for an orderly end, the second for an end at once."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.urgent = asyncio.Event()

    def request(self) -> None:
        """Asks once more."""
        (self.urgent if self.requested.is_set() else self.requested).set()


@asynccontextmanager
async def open_dataplane(settings: Settings, registry: CollectorRegistry | None = None) -> AsyncIterator[Dataplane]:
    """The whole server without a transport, for embedding; models are loaded at their first use unless preloaded.

    Args:
        settings: Those of transport, HTTP and log are not read.
        registry: Where Prometheus metrics go; one of its own where none is given.

    Raises:
        OSError: A directory or store cannot be used at all.
    """
    registry = registry or CollectorRegistry()
    async with _open(settings, registry, RpcTelemetry(registry)) as (dataplane, _):
        yield dataplane


@asynccontextmanager
async def _open(
    settings: Settings, registry: CollectorRegistry, telemetry: RpcTelemetry
) -> AsyncIterator[tuple[Dataplane, Backends]]:
    if settings.judge_prompt_directory is not None:
        await asyncio.to_thread(add_prompts, settings.judge_prompt_directory.expanduser())
    backends = await Backends.open(settings.engine_config(), registry)
    try:
        admission = Admission(settings.capacity())
        telemetry.watch(admission)
        dataplane = Dataplane(
            Scorer(backends.ports),
            backends.ports,
            limits=settings.limits(),
            deadlines=settings.deadlines(),
            admission=admission,
            count_result=telemetry.results.count,
            count_synthetic=telemetry.synthetic.count,
        )
        try:
            yield dataplane, backends
        finally:
            await dataplane.close()
    finally:
        await backends.close()


async def serve(settings: Settings, *, started: Callable[[int], None] | None = None, stop: Stop | None = None) -> None:
    """Serves until `stop` is requested; cancelling it ends at once.

    Args:
        settings: All of them.
        started: Told the gRPC port once calls are taken.
        stop: How to ask for the end.

    Raises:
        OSError: An address, a certificate or a directory cannot be used.
    """
    stop = stop or Stop()
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    telemetry = RpcTelemetry(registry)
    lifecycle = Lifecycle(telemetry)
    await lifecycle.loading()
    request_log = RequestLog(
        share=settings.log_request_share,
        level=logging.getLevelNamesMapping()[settings.log_level.upper()],
        on_drop=telemetry.log_dropped.inc,
    )
    calls = Calls(
        lifecycle, telemetry, request_log, tokens=[token.get_secret_value() for token in settings.auth_tokens]
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(request_log.close)
        if settings.http:
            http = HttpSide(settings.host, settings.http_port, registry=registry, lifecycle=lifecycle)
            stack.callback(http.close)
            _log.info("HTTP on port %d", http.port)
        server, port = await start_server(
            _address(settings),
            service_handlers(calls),
            lifecycle,
            max_message_bytes=settings.max_message_bytes,
            tls=_tls(settings),
        )
        stack.push_async_callback(server.stop, None)
        _warn_if_open(settings)
        loading = asyncio.create_task(_load(stack, settings, registry, telemetry))
        if not await _before_stop(loading, stop):
            return
        dataplane, backends = loading.result()
        # Entered last, left first: whatever happens, no call runs into closed backends.
        stack.push_async_callback(server.stop, None)
        await _look(backends, lifecycle)
        await lifecycle.serving(dataplane)
        observing = asyncio.create_task(_observe(backends, lifecycle))
        stack.callback(observing.cancel)
        _log.info("serving on port %d", port)
        if started is not None:
            started(port)
        await stop.requested.wait()
        await _wind_down(server, calls, lifecycle, settings, stop)
    _log.info("stopped")


def run(settings: Settings, *, started: Callable[[int], None] | None = None) -> int:
    """Serves until SIGTERM or SIGINT; a second signal ends at once.

    Args:
        settings: All of them.
        started: As for `serve`.

    Returns:
        The exit code: 0, or 1 where it cannot start.
    """
    _configure_log(settings.log_level)
    # A time beside every counter doubles what is scraped and tells nobody anything.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    try:
        asyncio.run(_serve_with_signals(settings, started))
    except OSError as error:
        _log.error("cannot serve: %s", error)
        return 1
    return 0


async def _serve_with_signals(settings: Settings, started: Callable[[int], None] | None) -> None:
    stop = Stop()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.request)
    await serve(settings, started=started, stop=stop)


async def _load(
    stack: AsyncExitStack, settings: Settings, registry: CollectorRegistry, telemetry: RpcTelemetry
) -> tuple[Dataplane, Backends]:
    """Opens the dataplane on `stack` and warms the default model up; without it, metrics that need none still work."""
    dataplane, backends = await stack.enter_async_context(_open(settings, registry, telemetry))
    loaded = await backends.load("")
    if isinstance(loaded, Failure):
        _log.warning("the default model is not loaded; metrics without a model work: %s", loaded.message)
    gc.collect()
    gc.freeze()  # what is loaded now stays: the collector need not look at it again
    return dataplane, backends


async def _before_stop(loading: asyncio.Task[tuple[Dataplane, Backends]], stop: Stop) -> bool:
    """Waits for `loading`, which is cut short only by an urgent stop: a store half open cannot be closed again.

    Returns:
        Whether to serve; False where the wish to stop came first.
    """
    urgent = asyncio.create_task(stop.urgent.wait())
    try:
        await asyncio.wait((loading, urgent), return_when=asyncio.FIRST_COMPLETED)
    finally:
        urgent.cancel()
        if stop.urgent.is_set():
            loading.cancel()
        await asyncio.wait((loading,))
    if not loading.cancelled():
        loading.result()  # what went wrong is told even to who wants to stop
    return not stop.requested.is_set()


async def _observe(backends: Backends, lifecycle: Lifecycle) -> None:
    """Carries the backends' state to health and metrics, again and again."""
    while True:
        await _look(backends, lifecycle)
        await asyncio.sleep(_OBSERVE_EVERY_S)


async def _look(backends: Backends, lifecycle: Lifecycle) -> None:
    health = backends.health()
    broken = [
        health.troubles.get(name) or f"model {name} is not loaded" for name, well in health.models.items() if not well
    ]
    unloaded = () if any(health.models.values()) else ("no model is loaded",)
    judge = health.judge
    degraded = (*unloaded, *health.degraded, *([f"judge: {judge.trouble}"] if judge.trouble else ()))
    await lifecycle.observe(degraded=degraded, broken=broken, judging=judge.ready if judge.configured else None)


async def _wind_down(server: aio.Server, calls: Calls, lifecycle: Lifecycle, settings: Settings, stop: Stop) -> None:
    _log.info("draining for %.1f s, then up to %.1f s for calls in flight", settings.drain_s, settings.grace_s)
    await lifecycle.draining()
    with suppress(TimeoutError):
        async with asyncio.timeout(settings.drain_s):
            await stop.urgent.wait()
    # Calls that come now are told UNAVAILABLE by us. Were the server stopped at once, gRPC would cancel those that it
    # has read and not yet handed over, with a code that clients take for their own doing and do not retry.
    lifecycle.stopping()
    settling = asyncio.create_task(_settle(calls, settings.grace_s))
    urgent = asyncio.create_task(stop.urgent.wait())
    try:
        await asyncio.wait((settling, urgent), return_when=asyncio.FIRST_COMPLETED)
    finally:
        settling.cancel()
        urgent.cancel()
    await server.stop(None if stop.urgent.is_set() else _LAST_WORDS_S)


async def _settle(calls: Calls, grace_s: float) -> None:
    """Waits for the calls in flight, then for those who have not noticed yet that nobody is served any more."""
    with suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            await calls.idle()
    with suppress(TimeoutError):
        async with asyncio.timeout(min(grace_s, _MAX_QUIET_WAIT_S)):
            await calls.quiet(_QUIET_S)


def _address(settings: Settings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{host}:{settings.port}"


def _tls(settings: Settings) -> Tls | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return Tls(settings.tls_cert, settings.tls_key, settings.tls_client_ca)


def _warn_if_open(settings: Settings) -> None:
    loopback = settings.host in {"127.0.0.1", "::1", "localhost"}
    if not loopback and not settings.auth_tokens and settings.tls_client_ca is None:
        _log.warning("anybody who reaches %s may use this server: set auth_tokens or tls_client_ca", settings.host)


def _configure_log(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
