"""The command ``gradewire triton``: up, down, status and install."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import click
import cloup

from gradewire_models.cli.help import Command, CommandGroup, ExampleCommand, rare_option
from gradewire_models.cli.options import REPOSITORY_HELP, without_traceback
from gradewire_models.judges.repository import default_judge_repository
from gradewire_models.repository.built import default_repository
from gradewire_proto.exit_codes import ExitCode
from gradewire_triton.environment import (
    ENVIRONMENT_VARIABLE,
    TritonEnvironment,
    default_environment,
    ensure_environment,
)
from gradewire_triton.process import ServerOptions, TritonProcess
from gradewire_triton.state import Addresses, StateDirectory, TritonStartError, default_state, why_not_ready

_POLL_S = 0.05
_STOP_S = 40.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_UP_EXAMPLES = """
  gradewire triton up                                serves every built model; Ctrl-C stops the server
  gradewire triton up all-MiniLM-L6-v2 --detach      returns once the server is ready
  gradewire triton up --grpc-port 0 --http-port 0 --metrics-port 0
  gradewire serve --backend triton --triton-url 127.0.0.1:8001
  gradewire triton up qwen2.5-coder-1.5b-instruct    serves the judge
  gradewire serve --judge-backend triton --judge-url 127.0.0.1:8001 --judge-remote-model qwen2.5-coder-1.5b-instruct
"""

_DIRECTORY = click.Path(file_okay=False, path_type=Path)
_STATE = click.option(
    "--state",
    type=_DIRECTORY,
    default=default_state,
    show_default="in the user's state directory",
    help="Keep the log and the backends in this directory, for only one server at a time.",
)
_ENVIRONMENT = click.option(
    "--environment",
    type=_DIRECTORY,
    default=default_environment,
    show_default=f"${ENVIRONMENT_VARIABLE}, or in the user's cache directory",
    help="Use this virtual environment for Triton. The first use creates it (about 320 MB).",
)


def _port_option(flag: str, default: int, text: str) -> Callable[[Command], Command]:
    return click.option(flag, default=default, show_default=True, metavar="N", help=text)


class _StopRequestedError(Exception):
    """Raised on SIGINT or SIGTERM, to stop the server."""


def run_in_foreground(
    environment: TritonEnvironment, options: ServerOptions, state: StateDirectory, ready: Callable[[Addresses], None]
) -> None:
    """Run a server until SIGINT or SIGTERM, then clean up; call `ready` when all models are ready.

    Raises:
        TritonStartError: The server did not start, or stopped unexpectedly.
    """
    with state.hold():
        process = TritonProcess(environment, options, state.path)
        try:
            _raise_on_signals()
            process.start()
            process.wait_until_ready()
            state.announce(process.addresses)
            ready(process.addresses)
            code = process.wait()
        except _StopRequestedError:
            return
        finally:
            process.stop()
        raise TritonStartError(f"Triton stopped unexpectedly with exit code {code}; {process.end_of_log()}")


def run_detached(arguments: Sequence[str], state: StateDirectory) -> Addresses:
    """Start ``gradewire triton up ARGUMENTS`` as a separate process, and wait until its server is ready.

    Raises:
        TritonStartError: The server did not start; the message is the process's output.
    """
    state.path.mkdir(parents=True, exist_ok=True)
    output = state.path / "up.log"
    with output.open("wb") as log:
        command = [sys.executable, "-m", "gradewire_triton", "up", *arguments]
        process = subprocess.Popen(  # noqa: S603 - our own arguments
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    while process.poll() is None:
        addresses = state.addresses()
        if addresses is not None and state.user() == process.pid:
            return addresses
        time.sleep(_POLL_S)
    raise TritonStartError(output.read_text(encoding="utf-8", errors="replace").strip().removeprefix("Error: "))


def stop_detached(state: StateDirectory) -> bool:
    """Stop the process that runs a server in `state`; return False if no server runs.

    Raises:
        TritonStartError: The process does not stop.
    """
    pid = state.user()
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    give_up = time.monotonic() + _STOP_S
    while state.user() == pid:
        if time.monotonic() > give_up:
            raise TritonStartError(f"process {pid} still runs {_STOP_S:g} s after SIGTERM. Run: kill -9 {pid}")
        time.sleep(_POLL_S)
    return True


def _raise_on_signals() -> None:
    # Ignore further signals, because they must not interrupt the orderly shutdown.
    def stop(_number: int, _frame: FrameType | None) -> None:
        for name in _STOP_SIGNALS:
            signal.signal(name, signal.SIG_IGN)
        raise _StopRequestedError

    for name in _STOP_SIGNALS:
        signal.signal(name, stop)


class _UnreachableError(click.ClickException):
    exit_code = ExitCode.UNREACHABLE


@click.group(cls=CommandGroup)
def triton() -> None:
    """Run the real Triton server on this machine, with an emulated ONNX Runtime backend."""


@triton.command(cls=ExampleCommand)
@cloup.option_group("Directories", _ENVIRONMENT)
@without_traceback(OSError, ValueError)
def install(environment: Path) -> None:
    """Install Triton's environment without starting Triton."""
    installed = ensure_environment(environment, report=_report)
    click.echo(f"Triton's environment: {installed.directory}")


@triton.command(cls=ExampleCommand, examples=_UP_EXAMPLES)
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@cloup.option_group(
    "Network",
    click.option(
        "--host",
        default="127.0.0.1",
        show_default=True,
        help="Listen on this address. Triton has no authentication, so everyone who can connect can use it.",
    ),
    _port_option("--grpc-port", 8001, "Serve gRPC on this port. 0 means any free port."),
    _port_option("--http-port", 8000, "Serve HTTP on this port. 0 means any free port."),
    _port_option("--metrics-port", 8002, "Serve Triton's metrics on this port. 0 means any free port."),
)
@cloup.option_group(
    "Server",
    click.option("--detach", is_flag=True, help="Return once the server is ready. `gradewire triton down` stops it."),
    click.option(
        "--poll",
        "poll_s",
        type=click.IntRange(min=0),
        default=0,
        metavar="SECONDS",
        help="Check the repository for changes at this interval. With 0, the default, load and unload models on "
        "request.",
    ),
)
@cloup.option_group(
    "Directories",
    click.option(
        "--model-repository",
        "repository",
        type=click.Path(file_okay=False, exists=True, path_type=Path),
        default=default_repository,
        help=REPOSITORY_HELP,
    ),
    rare_option(
        "--judge-repository",
        "judges",
        type=click.Path(file_okay=False, path_type=Path),
        help="Use this directory of built judges. If unset, use judges next to the model repository.",
    ),
    _STATE,
    _ENVIRONMENT,
)
@without_traceback(OSError, ValueError)
def up(models: tuple[str, ...], detach: bool, state: Path, environment: Path, **options: object) -> None:  # noqa: FBT001 - click calls it
    """Start Triton with the built MODELs; by default, with all encoders and graders that need no GPU.

    A judge needs gigabytes of memory, so it starts only if you name it.

    Press Ctrl-C or send SIGTERM to stop Triton once its running requests have finished. Triton also stops if this
    process is killed.
    """
    options["judges"] = options["judges"] or default_judge_repository(options["repository"])  # type: ignore[arg-type]
    server = ServerOptions(models=models, **options)  # type: ignore[arg-type]
    if not server.poll_s and not server.model_names():
        raise click.ClickException(f"no model for CPUs is built in {server.repository}. Run: gradewire models build")
    directory = StateDirectory(state)
    installed = ensure_environment(environment, report=_report)

    def show(addresses: Addresses) -> None:
        _show(addresses)
        for name in server.judge_names():
            flags = f"--judge-backend triton --judge-url {addresses.grpc} --judge-remote-model {name}"
            click.echo(f"use the judge with: gradewire serve {flags}")

    if not detach:
        run_in_foreground(installed, server, directory, show)
        return
    show(run_detached(_arguments(server, state, environment), directory))


@triton.command(cls=ExampleCommand)
@cloup.option_group("Directories", _STATE)
@without_traceback(OSError, ValueError)
def down(state: Path) -> None:
    """Stop the server in --state and wait until it has stopped."""
    if not stop_detached(StateDirectory(state)):
        raise click.ClickException(f"no Triton server runs in {state}")
    click.echo("Triton is stopped")


@triton.command(cls=ExampleCommand)
@cloup.option_group("Directories", _STATE)
@without_traceback(OSError, ValueError)
def status(state: Path) -> None:
    """Show the addresses of the server in --state; exit with 3 if the server is not ready."""
    addresses = StateDirectory(state).addresses()
    if addresses is None:
        raise _UnreachableError(f"no Triton server is ready in {state}")
    reason = why_not_ready(addresses, timeout_s=3.0)
    if reason:
        raise _UnreachableError(f"the Triton server in {state} is not ready: {reason}. See its log: {addresses.log}")
    _show(addresses)


def _report(line: str) -> None:
    click.echo(line, err=True)


def _show(addresses: Addresses) -> None:
    click.echo(f"Triton is ready on {addresses.grpc} (gRPC), {addresses.http} (HTTP), {addresses.metrics}")
    click.echo(f"log: {addresses.log}")
    click.echo(f"use it with: gradewire serve --backend triton --triton-url {addresses.grpc}")


def _arguments(server: ServerOptions, state: Path, environment: Path) -> list[str]:
    return [
        *server.models,
        f"--model-repository={server.repository.absolute()}",
        *([f"--judge-repository={server.judges.absolute()}"] if server.judges else []),
        f"--host={server.host}",
        f"--grpc-port={server.grpc_port}",
        f"--http-port={server.http_port}",
        f"--metrics-port={server.metrics_port}",
        f"--poll={server.poll_s}",
        f"--state={state.absolute()}",
        f"--environment={environment.absolute()}",
    ]
