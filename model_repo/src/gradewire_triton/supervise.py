"""Keeps one Triton server running until a signal asks for its end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType

from gradewire_triton.environment import TritonEnvironment
from gradewire_triton.errors import TritonStartError
from gradewire_triton.process import TritonProcess
from gradewire_triton.server_options import ServerOptions
from gradewire_triton.state import Addresses, StateDirectory

_POLL_S = 0.05
_STOP_S = 40.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _StopRequestedError(Exception):
    """A signal asked for the end."""


def run_in_foreground(
    environment: TritonEnvironment, options: ServerOptions, state: StateDirectory, ready: Callable[[Addresses], None]
) -> None:
    """Runs a server until SIGINT or SIGTERM, and removes what is left of it.

    `ready` is called with its addresses once it and its models are ready.

    Raises:
        TritonStartError: It did not start, or ended by itself.
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
        raise TritonStartError(f"Triton ended by itself with exit code {code}; {process.end_of_log()}")


def run_detached(arguments: Sequence[str], state: StateDirectory) -> Addresses:
    """Starts ``gradewire triton up ARGUMENTS`` as a process of its own and waits until its server is ready.

    Raises:
        TritonStartError: It did not start; the message is what it printed.
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
    """Ends the process that runs a server in `state`, and waits for its end.

    Returns:
        Whether there was one.

    Raises:
        TritonStartError: It does not end.
    """
    pid = state.user()
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    give_up = time.monotonic() + _STOP_S
    while state.user() == pid:
        if time.monotonic() > give_up:
            raise TritonStartError(f"process {pid} has not ended within {_STOP_S:g} s of SIGTERM")
        time.sleep(_POLL_S)
    return True


def _raise_on_signals() -> None:
    # Once: what follows is the orderly end, which a second signal must not cut short.
    def stop(_number: int, _frame: FrameType | None) -> None:
        for name in _STOP_SIGNALS:
            signal.signal(name, signal.SIG_IGN)
        raise _StopRequestedError

    for name in _STOP_SIGNALS:
        signal.signal(name, stop)
