"""Assemble and run the server."""

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

from gradewire_gateway.settings import LOOPBACK
from gradewire_server.backends import Backends, opened_handlers
from gradewire_server.domain.items import Failure
from gradewire_server.encoders.service import EncoderHealth
from gradewire_server.memory import collect_and_keep, collect_when_idle, guarded, return_large_blocks
from gradewire_server.process import ProcessLostError, Stop, unless
from gradewire_server.processes.child import Child, Position, run_to_exit
from gradewire_server.processes.http_gateway import GatewaySupervisor, endpoint, running_gateway
from gradewire_server.requests.admission import Admission
from gradewire_server.requests.handlers import Handlers, without_synonyms
from gradewire_server.rpc.dispatch import Calls
from gradewire_server.rpc.grpc_server import listen, make_server, service_handlers
from gradewire_server.rpc.health import Lifecycle
from gradewire_server.rpc.log import FloodFilter, RequestLog
from gradewire_server.rpc.operational_http import open_http
from gradewire_server.rpc.predecessor import after_predecessor, announced_stop, fixed_ports
from gradewire_server.rpc.sockets import raise_descriptor_limit, stop_listening
from gradewire_server.rpc.telemetry import RpcTelemetry, Snapshots
from gradewire_server.settings.server import Settings, unknown_variables
from gradewire_server.settings.transport import ShutdownConfig
from gradewire_server.shutdown import wind_down
from gradewire_server.storage.shared_table import SharedTable
from gradewire_server.tenants.shared_levels import SharedLevels
from gradewire_server.tenants.tokens import Authentication, TokensFile
from gradewire_server.tracing import open_call_tracer

_log = logging.getLogger(__name__)

_OBSERVE_EVERY_S: Final = 0.25
"""Seconds between health checks. A judge's restart takes longer than this, so health shows each restart."""
_GPU_SWITCH_S: Final = 0.0005
"""Seconds after which a thread gives Python's lock to the next one, in a process that uses a GPU."""
_LOST_GRACE_S: Final = 2.0
"""Seconds for calls in flight if the process lost its GPU. Their texts have failed, so only their replies are due."""
_LASTING_S: Final = 5.0
"""Seconds of overload before health reports it. A shorter overload is only a burst."""


async def before_stop(loading: asyncio.Task[Any], stop: Stop) -> bool:
    """Wait for `loading`. Only an urgent stop cancels it, because a half-opened store cannot be closed.

    Returns:
        True to serve, or False if a stop was requested.
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
        loading.result()  # raises the task's error even if the server is about to stop
    return not stop.requested.is_set()


async def serve(  # noqa: C901, PLR0912, PLR0915 - only this function puts a server together
    settings: Settings,
    *,
    started: Callable[[int], None] | None = None,
    stop: Stop | None = None,
    flood: FloodFilter | None = None,
    child: Child | None = None,
) -> None:
    """Serve until `stop` is requested. Cancelling this task ends the server at once.

    Args:
        settings: The server's settings.
        started: A function that is called with the gRPC port once the server accepts calls.
        stop: The request to stop. Without it, only cancellation ends the server.
        flood: The log's filter. The server counts and reports the messages that the filter drops.
        child: The connection to the supervisor if this is one of several server processes.

    Raises:
        OSError: An address, certificate or directory cannot be used.
        TokensFileError: The tokens file cannot be used.
        ProcessLostError: The process lost its GPU. Until then it reports NOT_SERVING.
    """
    stop = stop or Stop()
    position = None if child is None else child.position
    if settings.listen.tls is not None:
        settings.listen.tls.check_readable()
    tokens_file = await _read_tokens(settings, None if position is None else SharedLevels(position.quotas))
    authentication = Authentication(settings.listen.auth_tokens, file=tokens_file)
    raise_descriptor_limit()
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    telemetry = RpcTelemetry(registry)
    flood = flood or FloodFilter()
    flood.on_left_out, flood.on_lost_call = telemetry.log_left_out.inc, telemetry.lost_replies.inc
    lifecycle = Lifecycle(telemetry)
    request_log = RequestLog(
        level=logging.getLevelNamesMapping()[settings.log.level.upper()],
        on_drop=telemetry.log_dropped.inc,
    )
    async with AsyncExitStack() as stack:
        if child is None:
            ports = fixed_ports(settings)
            await unless(stop.requested, after_predecessor(ports, settings.shutdown.limit_s))
            if stop.requested.is_set():
                return
            await stack.enter_async_context(announced_stop(stop.requested, ports))
        tracer = await stack.enter_async_context(open_call_tracer(settings.tracing.settings(), registry))
        calls = Calls(
            lifecycle,
            telemetry,
            request_log,
            authentication=None if authentication.is_open else authentication,
            tracer=tracer,
            process="" if position is None else f"{position.index}/{position.count}",
        )
        if child is not None:
            await stack.enter_async_context(child.joined(registry, lifecycle))
        stack.push_async_callback(request_log.close)
        if tokens_file is not None:
            stack.callback(asyncio.create_task(tokens_file.watch()).cancel)
        if (http_port := settings.listen.http_port) is not None:
            stack.callback(open_http(settings.listen, http_port, registry, lifecycle, authentication).close)
        handed = None if settings.http_api.port is None else stack.enter_context(endpoint(settings))
        loading = None
        if position is not None:
            # Load before listening. Until then, the system sends connections to other processes.
            loading = asyncio.create_task(_load(stack, settings, registry, telemetry, position))
            if not await before_stop(loading, stop):
                return
            lifecycle.loaded(loading.result()[0])
        server = make_server(
            service_handlers(calls, Snapshots(registry, lifecycle.report, None if child is None else child.metrics)),
            lifecycle,
            max_message_bytes=settings.limits.max_message_bytes,
            max_connections=settings.capacity.max_connections,
            authentication=authentication if "health" in settings.listen.auth_also else None,
            shared=position is not None,
        )
        port = await listen(
            server,
            _address(settings, settings.listen.port if position is None else position.port),
            tls=settings.listen.tls,
            private=position.private if position is not None else "" if handed is None else handed.private,
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
            gateway = await stack.enter_async_context(
                running_gateway(handed, settings, handed.private, telemetry.gateway_restarts.inc)
            )
        _warn_of_unknown_variables()
        _warn_if_open(settings)
        loading = loading or asyncio.create_task(_load(stack, settings, registry, telemetry))
        if not await before_stop(loading, stop):
            return
        handlers, backends = loading.result()
        # The stack closes in reverse order: gRPC stops first at exit, so that no call reaches closed backends.
        stack.push_async_callback(server.stop, None)
        show = partial(_show_health, backends, lifecycle, handlers.context.admission, gateway)
        show()
        if missing := await without_synonyms(backends.ports.lexicon):
            _log.info("The metric meteor is not available: %s", missing)
        memory.loaded()
        lifecycle.serving(handlers)
        stack.callback(asyncio.create_task(_observe(show, flood)).cancel)
        stack.callback(asyncio.create_task(_stop_when_lost(backends, stop, others_serve=child is not None)).cancel)
        await stack.enter_async_context(collect_when_idle(calls.idle))
        if position is None:
            _log.info("serving on port %d", port)
        else:
            _log.info("process %d of %d is serving", position.index, position.count)
        if started is not None:
            started(port)
        await stop.requested.wait()
        if stop.others_serve:
            stop_listening(port)
        await wind_down(server, calls, lifecycle, _shutdown_of(settings, backends), stop)
    if reason := backends.lost():
        raise ProcessLostError(reason)
    _log.info("stopped")


def run(
    settings: Settings,
    *,
    started: Callable[[int], None] | None = None,
    child: Child | None = None,
    stop: Stop | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT. A second signal ends the server at once.

    If this process is one of several, SIGHUP stops only this process, and its callers move to the other processes.

    Returns:
        The exit code: 0, or 1 if the server cannot start. If it loses its GPU, the process ends with exit code 1.
    """
    return_large_blocks()
    if settings.engine.gpu.required:
        # Threads prepare and read a GPU's batches in Python. With the default interval, the event loop would wait up
        # to 5 ms for every turn.
        sys.setswitchinterval(_GPU_SWITCH_S)
    stop = stop or Stop()

    async def until_signal(flood: FloodFilter) -> None:
        stop.listen(_cannot_reload if child is None else stop.leave)
        await serve(settings, started=started, stop=stop, flood=flood, child=child)

    return run_to_exit(until_signal, settings.log.level)


async def _observe(show: Callable[[], None], flood: FloodFilter) -> None:
    while True:
        show()
        flood.report()
        await asyncio.sleep(_OBSERVE_EVERY_S)


async def _stop_when_lost(backends: Backends, stop: Stop, *, others_serve: bool) -> None:
    while not backends.lost():  # noqa: ASYNC110 - the thread that notices it has no event of this loop
        await asyncio.sleep(_OBSERVE_EVERY_S)
    (stop.leave if others_serve else stop.request)()


def _shutdown_of(settings: Settings, backends: Backends) -> ShutdownConfig:
    """Return the settings for the shutdown, which is short if this process can answer no more calls."""
    if not backends.lost():
        return settings.shutdown
    return ShutdownConfig(drain_s=0.0, grace_s=min(settings.shutdown.grace_s, _LOST_GRACE_S))


def _show_health(
    backends: Backends,
    lifecycle: Lifecycle,
    admission: Admission,
    gateway: GatewaySupervisor | None,
) -> None:
    health, judge, overload_s = backends.health(), backends.judge_health(), admission.overload_s
    degraded = [*health.degraded]
    if not any(health.models.values()):
        degraded.insert(0, "no model is loaded")
    if gateway is not None and gateway.trouble:
        degraded.append(gateway.trouble)
    if judge.trouble:
        degraded.append(f"judge: {judge.trouble}")
    if overload_s > _LASTING_S:
        degraded.append(f"overload: small requests have been refused for {overload_s:.0f} s")
    lost = backends.lost()
    lifecycle.observe(
        degraded=degraded,
        broken=[lost] if lost else _broken_models(health),
        judging=judge.ready if judge.configured else None,
    )


def _broken_models(health: EncoderHealth) -> list[str]:
    return [
        health.troubles.get(name) or f"model {name} is not loaded" for name, well in health.models.items() if not well
    ]


def _cannot_reload() -> None:
    _log.warning(
        "SIGHUP has no effect on a server with one process. The server rereads the tokens file whenever it changes; "
        "restart the server to apply other settings. With --processes, SIGHUP restarts the processes one by one"
    )


async def _load(
    stack: AsyncExitStack,
    settings: Settings,
    registry: CollectorRegistry,
    telemetry: RpcTelemetry,
    position: Position | None = None,
) -> tuple[Handlers, Backends]:
    """Open the handlers on `stack` and load the default model. If loading fails, metrics without a model still work."""
    table = None if position is None else _shared_table(position)
    handlers, backends = await stack.enter_async_context(opened_handlers(settings, registry, telemetry, table))
    loaded = await backends.load("")
    if isinstance(loaded, Failure):
        _log.warning("The default model is not loaded, so only metrics without a model work: %s", loaded.message)
    collect_and_keep()
    return handlers, backends


def _shared_table(position: Position) -> SharedTable | None:
    """Return the memory that this process shares with others, or None if the processes share no memory."""
    if position.shared is None:
        return None
    try:
        return SharedTable(position.shared, position.index)
    except (OSError, ValueError) as error:
        _log.warning("This process shares no memory with the other processes: %s", error)
        return None


async def _read_tokens(settings: Settings, levels: SharedLevels | None) -> TokensFile | None:
    path = settings.listen.auth_tokens_file
    if path is None:
        return None
    return await asyncio.to_thread(TokensFile, path.expanduser(), settings.engine.cache.namespace, levels=levels)


def _address(settings: Settings, port: int) -> str:
    host = f"[{settings.listen.host}]" if ":" in settings.listen.host else settings.listen.host
    return f"{host}:{port}"


def _warn_of_unknown_variables() -> None:
    for name in unknown_variables():
        _log.warning("The environment variable %s is not a setting of this version and has no effect", name)


def _warn_if_open(settings: Settings) -> None:
    listen = settings.listen
    hosts = {listen.host} if settings.http_api.port is None else {listen.host, settings.http_api.host}
    for host in hosts - LOOPBACK:
        if listen.is_open and (listen.tls is None or listen.tls.client_ca is None):
            _log.warning(
                "Anybody who can reach %s can use this server. Set auth_tokens, auth_tokens_file or tls_client_ca", host
            )
