"""The vLLM of this machine: found, started on the loopback interface, waited for, and ended."""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from benchmarks.gpu.judging import JudgeServer

START_S: Final = 240.0
STOP_S: Final = 30.0
NAME: Final = "judge"
_ROOT: Final = Path(__file__).resolve().parents[2]
_OPTIONS: Final = {
    "--host": "127.0.0.1",
    "--served-model-name": NAME,
    # A prompt of `lave` has less than 1 000 tokens; what a model could read would take memory from its batches.
    "--max-model-len": "4096",
    # The encoders of this very process have taken some.
    "--gpu-memory-utilization": "0.6",
}
_POLL_S: Final = 0.25
# A user with a proxy means other machines by it.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def vllm_command() -> list[str]:
    """The command that serves a model, less its arguments: `vllm`, or the module of this Python; empty: no vLLM."""
    command = shutil.which("vllm")
    if command is not None:
        return [command, "serve"]
    found = importlib.util.find_spec("vllm")
    return [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve"] if found is not None else []


@contextmanager
def vllm_serving(command: Sequence[str], weights: Path, *, start_s: float = START_S) -> Iterator[JudgeServer]:
    """Starts vLLM, waits until it is healthy, and ends it and all that it has started.

    Args:
        command: As `vllm_command` gives it.
        weights: Directory of the model.
        start_s: Longest wait.

    Raises:
        RuntimeError: It ended, or was not healthy in time; the message has the end of what it said.
    """
    port = _free_port()
    options = [text for pair in _OPTIONS.items() for text in pair]
    arguments = [*command, str(weights), *options, "--port", str(port)]
    with (
        tempfile.TemporaryFile("w+") as log,
        # A session of its own: its processes are one group then, whose number is its pid.
        subprocess.Popen(
            arguments, stdout=log, stderr=subprocess.STDOUT, env=_environment(), start_new_session=True
        ) as process,
    ):
        try:
            _wait_until_healthy(process, f"http://127.0.0.1:{port}/health", start_s, log)
            yield JudgeServer(f"http://127.0.0.1:{port}/v1", NAME)
        finally:
            _end(process)


def _environment() -> dict[str, str]:
    # Packages of a pack are not those that vLLM was installed with.
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [each for each in path if each and not Path(each).resolve().is_relative_to(_ROOT)]
    here = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "PYTHONPATH": os.pathsep.join(others)}
    return {**os.environ, **here}


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str, start_s: float, log: IO[str]) -> None:
    ends_s = time.monotonic() + start_s
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"vLLM ended with {process.returncode}: {_end_of(log)}")
        try:
            with _OPENER.open(url, timeout=5):
                return
        except OSError:  # not yet: nobody listens, or its answer is 503
            if time.monotonic() > ends_s:
                raise RuntimeError(f"vLLM is not healthy after {start_s:.0f} s: {_end_of(log)}") from None
        time.sleep(_POLL_S)


def _end_of(log: IO[str]) -> str:
    log.seek(0)
    return log.read()[-300:]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
    with suppress(ProcessLookupError):  # usually it has ended its own
        os.killpg(process.pid, signal.SIGKILL)


def _free_port() -> int:
    # As in benchmarks.common.processes, whose psutil is not in the pack.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
