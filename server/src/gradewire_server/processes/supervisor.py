"""The supervisor, which starts, watches, restarts and stops several server processes on one port."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, ProcessCollector

from gradewire_server.process import Phase, Stop, unless
from gradewire_server.processes.child import Position, StartError, run_to_exit
from gradewire_server.processes.http_gateway import endpoint, private_directory, running_gateway
from gradewire_server.processes.server_process import JUDGE_HOST, LOAD_S, RestartError, ServerProcess, Worker
from gradewire_server.processes.supervisor_state import SupervisorState, SupervisorTelemetry
from gradewire_server.rpc.log import FloodFilter
from gradewire_server.rpc.operational_http import open_http
from gradewire_server.rpc.predecessor import after_predecessor, announced_stop, fixed_ports
from gradewire_server.rpc.sockets import bound_socket
from gradewire_server.settings.server import Settings
from gradewire_server.settings.shares import shared_bytes
from gradewire_server.storage.shared_table import create_table
from gradewire_server.tenants.tokens import Authentication, TokensFile

_log = logging.getLogger(__name__)

_HOST_STOP_S: Final = 15.0
"""Seconds for the judge host to end."""


@contextmanager
def reserved_port(host: str, port: int) -> Iterator[int]:
    """Reserve a port that this user's processes can share (SO_REUSEPORT), and yield the port.

    Raises:
        BindError: Another program or server uses the port.
    """
    # Bind the port exclusively, and share the port afterwards. During bind, SO_REUSEADDR is set, or a recently ended
    # server's old connections would block the port. The socket never listens.
    with bound_socket(host, port, "port") as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        yield int(bound.getsockname()[1])


async def restart_whenever(wanted: asyncio.Event, state: SupervisorState) -> None:
    """Restart all processes whenever `wanted` is set. A new request replaces a running restart."""
    under_way: asyncio.Task[None] | None = None
    try:
        while True:
            await wanted.wait()
            wanted.clear()
            if under_way is not None and not under_way.done():
                _log.info("Another restart was requested. The current restart ends, and a new one starts")
                await _cancelled(under_way)
            under_way = asyncio.create_task(_restart(state))
    finally:
        if under_way is not None:
            await _cancelled(under_way)


async def restart_all(state: SupervisorState) -> None:
    """Restart the processes one by one, while all other processes serve. Stop after a failed restart.

    Processes that do not serve or are not ready come first, because all other restarts would wait for these processes.
    """
    _log.info("restarting %d processes, one after the other", len(state.workers))
    servers = sorted(state.workers, key=lambda worker: (worker.serves, worker.ready))
    for worker in servers if state.judge_host is None else (*servers, state.judge_host):
        try:
            await _until_others_serve(worker, state)
            await worker.restart()
        except RestartError as error:
            _log.error(
                "The restart ends here, and the other processes keep serving: %s. Fix the cause and send SIGHUP again",
                error,
            )
            return
        _log.info("%s was restarted", worker.name)
    _log.info("restarted %d processes", len(state.workers))


async def _until_others_serve(worker: Worker, state: SupervisorState) -> None:
    """Wait until all other workers serve. Return at once if `worker` does not serve, because it then has no calls."""
    while worker.serves and (down := [other for other in state.workers if other is not worker and not other.serves]):
        await down[0].until_serving(LOAD_S)


async def _restart(state: SupervisorState) -> None:
    try:
        await restart_all(state)
    except Exception:  # noqa: BLE001 - the server keeps running, and the next restart may succeed
        _log.exception("The restart failed because of a defect. Please report it")


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))


async def supervise(
    settings: Settings,
    values: Mapping[str, Any],
    stop: Stop,
    restart: asyncio.Event,
    *,
    started: Callable[[int], None] | None = None,
) -> None:
    """Serve with several processes until `stop` is requested.

    Whenever `restart` is set, restart all processes one by one. `values` contains the settings given as flags, because
    each process reads all other settings itself. `started` receives the port.

    Raises:
        OSError: An address, certificate or directory cannot be used.
        TokensFileError: The tokens file cannot be used.
        StartError: A process was lost before it could serve.
    """
    own = CollectorRegistry()
    ProcessCollector(registry=own)
    state = SupervisorState(own)
    telemetry = SupervisorTelemetry(own, lambda: sum(worker.ready for worker in state.workers))
    count = settings.process_count
    ports = fixed_ports(settings)
    await unless(stop.requested, after_predecessor(ports, settings.shutdown.limit_s))
    if stop.requested.is_set():
        return
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(announced_stop(stop.requested, ports))
        port = stack.enter_context(reserved_port(settings.listen.host, settings.listen.port))
        directory = stack.enter_context(private_directory())
        await _http_side(stack, settings, state)
        with_judges = settings.engine.judge.backend == "embedded"
        shared = _shared_memory(stack, settings, count)
        positions = [
            Position(
                index,
                count,
                port,
                directory,
                judge_host=with_judges,
                shared=shared,
                device=gpu.device,
                device_processes=gpu.processes,
            )
            for index, gpu in enumerate(await asyncio.to_thread(settings.gpu_shares, count))
        ]
        state.workers = [
            Worker(
                position.index,
                partial(ServerProcess.start, position, values, state.metrics),
                stop_s=settings.shutdown.limit_s,
                on_exit=partial(_count_exit, state, telemetry.restarts),
            )
            for position in positions
        ]
        if with_judges:
            state.judge_host = Worker(
                count,
                partial(ServerProcess.start, positions[0], values, state.metrics, hosts_judges=True),
                stop_s=_HOST_STOP_S,
                on_exit=partial(_count_exit, state, telemetry.judge_host_restarts),
                name=JUDGE_HOST,
            )
            # The judge host ends last, because the server processes' last calls may need it.
            stack.push_async_callback(_cancelled, asyncio.create_task(state.judge_host.run()))
        if settings.http_api.port is not None:
            handed = stack.enter_context(endpoint(settings))
            private = ",".join(position.private for position in positions)
            state.gateway = await stack.enter_async_context(
                running_gateway(handed, settings, private, telemetry.gateway_restarts.inc)
            )
        stack.callback(asyncio.create_task(state.watch()).cancel)
        running = [asyncio.create_task(worker.run()) for worker in state.workers]
        # Allow restarts while processes still load, because a stuck process may have a wrong setting.
        restarting = asyncio.create_task(restart_whenever(restart, state))
        try:
            if await _all_serve(state, stop):
                state.phase = Phase.SERVING
                _log.info("serving on port %d", port)
                if started is not None:
                    started(port)
                await stop.requested.wait()
        finally:
            state.phase = Phase.DRAINING
            stopping_now = asyncio.create_task(_stop_now(state, stop))
            for task in (restarting, *running):
                task.cancel()
            await asyncio.wait((restarting, *running))
            stopping_now.cancel()
    _log.info("stopped")


def _shared_memory(stack: AsyncExitStack, settings: Settings, count: int) -> int | None:
    """Return the file descriptor of the processes' shared memory, which `stack` closes, or None without such memory."""
    try:
        descriptor = create_table(shared_bytes(settings.given, count), count)
    except OSError as error:
        _log.warning("The processes share no memory, so each computes what another has computed: %s", error)
        return None
    stack.callback(os.close, descriptor)
    return descriptor


async def _all_serve(state: SupervisorState, stop: Stop) -> bool:
    """Wait until all processes have loaded, even if they are not ready. Return False if a stop is requested first.

    Raises:
        StartError: A process was lost before it could serve.
    """

    async def all_serve() -> bool:
        async with asyncio.TaskGroup() as waiting:
            for worker in state.all_workers:
                waiting.create_task(worker.until_serving())
        return True

    try:
        return await unless(stop.requested, all_serve()) or False
    except ExceptionGroup as errors:  # a group of RestartErrors
        raise StartError(str(errors.exceptions[0])) from errors


async def _stop_now(state: SupervisorState, stop: Stop) -> None:
    await stop.urgent.wait()
    for worker in state.all_workers:
        worker.signal(signal.SIGTERM)


def _count_exit(state: SupervisorState, losses: Counter, process: ServerProcess, lost: bool) -> None:  # noqa: FBT001 - as Worker calls it
    state.process_exited(process)
    if lost:
        losses.inc()


async def _http_side(stack: AsyncExitStack, settings: Settings, state: SupervisorState) -> None:
    listen = settings.listen
    path, file = listen.auth_tokens_file, None
    if path is not None:
        file = await asyncio.to_thread(TokensFile, path.expanduser(), settings.engine.cache.namespace)
        stack.callback(asyncio.create_task(file.watch()).cancel)
    if (port := listen.http_port) is not None:
        http = open_http(listen, port, state, state, Authentication(listen.auth_tokens, file=file))
        # Close the server on another thread, because the server may wait for metrics that this loop collects.
        stack.push_async_callback(asyncio.to_thread, http.close)


def run(settings: Settings, values: Mapping[str, Any], *, started: Callable[[int], None] | None = None) -> int:
    """Serve with several processes until a signal stops the server; see `supervise`.

    Returns:
        The exit code, which is 1 if the server cannot start.
    """

    async def serve(_flood: FloodFilter) -> None:
        stop, restart = Stop(), asyncio.Event()
        stop.listen(restart.set)
        await supervise(settings, values, stop, restart, started=started)

    return run_to_exit(serve, settings.log.level)
