"""Puts the server together, starts it and stops it.

Start: listen with health NOT_SERVING, load and warm up, flip. Stop: flip, go on serving through the drain window, take
no more calls, let those in flight finish, close the backends.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, disable_created_metrics

from gradewire_gateway.settings import LOOPBACK
from gradewire_server.allocator import return_large_blocks
from gradewire_server.backends import Backends
from gradewire_server.domain.result import Failure
from gradewire_server.garbage import collect_and_keep, collected_at_rest
from gradewire_server.gateway.endpoint import Endpoint, endpoint, gateway_settings
from gradewire_server.gateway.supervisor import GatewaySupervisor, supervised
from gradewire_server.guards import guarded
from gradewire_server.observing import observe, observe_once
from gradewire_server.opening import opened
from gradewire_server.processes.member import Member, Place
from gradewire_server.requests.handlers import Handlers
from gradewire_server.requests.list_models import without_synonyms
from gradewire_server.rpc.authentication import Authentication
from gradewire_server.rpc.calls import Calls
from gradewire_server.rpc.connections.descriptors import raise_descriptor_limit
from gradewire_server.rpc.connections.listening import stop_listening
from gradewire_server.rpc.http import HttpSide, server_tls
from gradewire_server.rpc.lifecycle import Lifecycle
from gradewire_server.rpc.log_bound import FloodFilter
from gradewire_server.rpc.monitoring.snapshots import Snapshots
from gradewire_server.rpc.request_log import RequestLog, configure_log
from gradewire_server.rpc.server import start_server
from gradewire_server.rpc.services import service_handlers
from gradewire_server.rpc.telemetry import RpcTelemetry
from gradewire_server.settings.server import Settings
from gradewire_server.shutdown import before_stop, wind_down
from gradewire_server.stop import Stop
from gradewire_server.tenants.file import TokensFileError
from gradewire_server.tenants.shared_levels import SharedLevels
from gradewire_server.tenants.tokens_file import TokensFile
from gradewire_server.tracing.opening import tracing

_log = logging.getLogger(__name__)


async def serve(  # noqa: C901, PLR0915 - the one place that puts a server together
    settings: Settings,
    *,
    started: Callable[[int], None] | None = None,
    stop: Stop | None = None,
    flood: FloodFilter | None = None,
    member: Member | None = None,
) -> None:
    """Serves until `stop` is requested; cancelling it ends at once.

    Args:
        settings: All of them.
        started: Told the gRPC port once calls are taken.
        stop: How to ask for the end.
        flood: Of the log's handler, if it has one; counted and told from here.
        member: This process as one of several; None: it serves alone.

    Raises:
        OSError: An address, a certificate or a directory cannot be used.
        TokensFileError: The tokens file cannot be used.
    """
    stop = stop or Stop()
    place = None if member is None else member.place
    tokens_file = await _read_tokens(settings, None if place is None else SharedLevels(place.quotas))
    authentication = Authentication(settings.listen.auth_tokens, file=tokens_file)
    raise_descriptor_limit()
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    telemetry = RpcTelemetry(registry)
    flood = flood or FloodFilter()
    flood.on_left_out, flood.on_lost_call = telemetry.log_left_out.inc, telemetry.lost_replies.inc
    lifecycle = Lifecycle(telemetry)
    await lifecycle.loading()
    request_log = RequestLog(
        share=settings.log.request_share,
        level=logging.getLevelNamesMapping()[settings.log.level.upper()],
        on_drop=telemetry.log_dropped.inc,
    )
    async with AsyncExitStack() as stack:
        tracer = await stack.enter_async_context(tracing(settings.tracing.telemetry(), registry))
        calls = Calls(
            lifecycle,
            telemetry,
            request_log,
            authentication=authentication,
            tracer=tracer,
            process="" if place is None else f"{place.index}/{place.count}",
        )
        if member is not None:
            await stack.enter_async_context(member.joined(registry, lifecycle))
        stack.push_async_callback(request_log.close)
        if tokens_file is not None:
            stack.callback(asyncio.create_task(tokens_file.watch()).cancel)
        if settings.listen.http:
            stack.callback(_http_side(settings, registry, lifecycle, authentication).close)
        handed = None if settings.http_api.port is None else stack.enter_context(endpoint(settings))
        loading = None
        if place is not None:
            # Where it listens the system sends it connections, and others could serve them now.
            loading = asyncio.create_task(_load(stack, settings, registry, telemetry))
            if not await before_stop(loading, stop):
                return
            lifecycle.loaded(loading.result()[0])
        server, port = await start_server(
            _address(settings, settings.listen.port if place is None else place.port),
            service_handlers(calls, Snapshots(registry, lifecycle, None if member is None else member.figures)),
            lifecycle,
            max_message_bytes=settings.limits.max_message_bytes,
            connections=settings.connections,
            tls=settings.listen.tls,
            authentication=authentication if settings.listen.auth_health else None,
            private=_private(handed, place),
            shared=place is not None,
        )
        stack.push_async_callback(server.stop, None)
        memory = await stack.enter_async_context(
            guarded(
                port,
                calls.receiver,
                telemetry,
                memory_limit_bytes=settings.memory.limit_bytes,
            )
        )
        gateway = None
        if handed is not None:
            gateway = GatewaySupervisor(
                handed,
                gateway_settings(settings, handed.private),
                settings.log.level,
                restarted=telemetry.gateway_restarts.inc,
            )
            await stack.enter_async_context(supervised(gateway))
            _log.info("HTTP API on port %d", handed.port)
        _warn_if_open(settings)
        loading = loading or asyncio.create_task(_load(stack, settings, registry, telemetry))
        if not await before_stop(loading, stop):
            return
        handlers, backends = loading.result()
        # Entered last, left first: whatever happens, no call runs into closed backends.
        stack.push_async_callback(server.stop, None)
        await observe_once(backends, lifecycle)
        if missing := await without_synonyms(backends.ports.lexicon):
            _log.info("meteor cannot be computed: %s", missing)
        memory.loaded()
        await lifecycle.serving(handlers)
        observing = asyncio.create_task(
            observe(backends, lifecycle, flood, handlers.context, settings.capacity.unready_overload_s, gateway=gateway)
        )
        stack.callback(observing.cancel)
        await stack.enter_async_context(collected_at_rest(calls.idle))
        if place is None:
            _log.info("serving on port %d", port)
        else:
            _log.info("process %d of %d takes calls", place.index, place.count)
        if started is not None:
            started(port)
        await stop.requested.wait()
        if stop.others_serve:
            stop_listening(port)
        await wind_down(server, calls, lifecycle, settings.shutdown, stop)
    _log.info("stopped")


def run(settings: Settings, *, started: Callable[[int], None] | None = None) -> int:
    """Serves until SIGTERM or SIGINT; a second signal ends at once.

    Args:
        settings: All of them.
        started: As for `serve`.

    Returns:
        The exit code: 0, or 1 where it cannot start.
    """
    flood = configure_log(settings.log.level)
    return _run(settings, Stop(), flood, started=started)


def run_member(settings: Settings, member: Member, stop: Stop) -> int:
    """As `run`, for one of several processes.

    Args:
        settings: Of this process: its share of what is set for all.
        member: It.
        stop: Requests to stop, besides those by signals.
    """
    return _run(settings, stop, configure_log(settings.log.level), member=member)


def _run(
    settings: Settings,
    stop: Stop,
    flood: FloodFilter,
    *,
    started: Callable[[int], None] | None = None,
    member: Member | None = None,
) -> int:
    return_large_blocks()
    # A creation time beside every counter would double the lines that are scraped, and nobody reads it.
    disable_created_metrics()  # type: ignore[no-untyped-call]

    async def until_signal() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.request)
        if member is None:
            with_terminal = sys.stdin is not None and sys.stdin.isatty()
            loop.add_signal_handler(signal.SIGHUP, stop.request if with_terminal else _cannot_reload)
        else:
            loop.add_signal_handler(signal.SIGHUP, stop.leave)
        await serve(settings, started=started, stop=stop, flood=flood, member=member)

    try:
        asyncio.run(until_signal())
    except TokensFileError as error:
        _log.error("cannot serve: auth_tokens_file: %s", error)
        return 1
    except OSError as error:
        _log.error("cannot serve: %s", error)
        return 1
    finally:
        flood.tell(at_once=True)
    return 0


def _cannot_reload() -> None:
    _log.warning(
        "SIGHUP changes nothing in a server of one process: its tokens file is read again whenever it changes, all "
        "other settings at the next start; several processes restart one after the other (--processes)"
    )


async def _load(
    stack: AsyncExitStack, settings: Settings, registry: CollectorRegistry, telemetry: RpcTelemetry
) -> tuple[Handlers, Backends]:
    """Opens the handlers on `stack` and warms the default model up; without it, metrics that need none still work."""
    handlers, backends = await stack.enter_async_context(opened(settings, registry, telemetry))
    loaded = await backends.load("")
    if isinstance(loaded, Failure):
        _log.warning("the default model is not loaded; metrics without a model work: %s", loaded.message)
    collect_and_keep()
    return handlers, backends


def _http_side(
    settings: Settings, registry: CollectorRegistry, lifecycle: Lifecycle, authentication: Authentication
) -> HttpSide:
    http = HttpSide(
        settings.listen.host,
        settings.listen.http_port,
        registry=registry,
        lifecycle=lifecycle,
        tls=server_tls(settings.listen.tls) if settings.listen.tls and settings.listen.http_tls else None,
        authentication=authentication if settings.listen.auth_http else None,
    )
    _log.info("HTTP on port %d", http.port)
    return http


async def _read_tokens(settings: Settings, levels: SharedLevels | None) -> TokensFile | None:
    path = settings.listen.auth_tokens_file
    if path is None:
        return None
    return await asyncio.to_thread(TokensFile, path.expanduser(), settings.engine.cache.namespace, levels=levels)


def _private(handed: Endpoint | None, place: Place | None) -> str:
    """Where a gateway reaches this process; empty where there is none."""
    if place is not None:
        return place.private
    return "" if handed is None else handed.private


def _address(settings: Settings, port: int) -> str:
    host = f"[{settings.listen.host}]" if ":" in settings.listen.host else settings.listen.host
    return f"{host}:{port}"


def _warn_if_open(settings: Settings) -> None:
    listen = settings.listen
    hosts = {listen.host} if settings.http_api.port is None else {listen.host, settings.http_api.host}
    for host in hosts - LOOPBACK:
        if listen.is_open and (listen.tls is None or listen.tls.client_ca is None):
            _log.warning(
                "anybody who reaches %s may use this server: set auth_tokens, auth_tokens_file or tls_client_ca", host
            )
