"""A child process that does not outlive this one, however this one ends."""

import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

# The program replaces this one after the kernel is asked (PR_SET_PDEATHSIG) for SIGINT when its parent is gone.
_LAUNCH = (
    f"import ctypes, os, sys; ctypes.CDLL(None).prctl(1, {int(signal.SIGINT)}); os.execv(sys.argv[1], sys.argv[1:])"
)


def start_child(
    program: Path, arguments: Sequence[str], *, variables: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Starts a program that gets SIGINT when this process ends, and none by Ctrl-C at the terminal.

    `variables` are its whole environment; its output overwrites `log`.

    Raises:
        OSError: The log cannot be written.
    """
    started: Future[subprocess.Popen[bytes]] = Future()

    def start_and_stay() -> None:
        try:
            with log.open("wb") as output:
                child = subprocess.Popen(  # noqa: S603 - our own arguments
                    [sys.executable, "-c", _LAUNCH, program, *arguments],
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            started.set_exception(error)
            return
        started.set_result(child)
        child.wait()

    # To the kernel the parent is a thread, not a process: this one lives as long as the child.
    threading.Thread(target=start_and_stay, name="triton", daemon=True).start()
    return started.result()
