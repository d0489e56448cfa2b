"""Measure how many items per second a judge rates on this machine's vLLM through gradewire."""

import asyncio
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from benchmarks.common.ports import free_port
from benchmarks.gpu.calling import items_of, serving

from gradewire import AsyncClient, GradewireError, JudgeParts
from gradewire.results import MetricScore

METRIC: Final = "lave"
AT_A_TIME: Final = 64
"""Number of concurrent items, and of concurrent requests to the judge's server."""
DEADLINE_S: Final = 60.0
NOT_TOLD: Final = "not told"
START_S: Final = 240.0
STOP_S: Final = 30.0
NAME: Final = "judge"
_ROOT: Final = Path(__file__).resolve().parents[2]
_OPTIONS: Final = {
    "--host": "127.0.0.1",
    "--served-model-name": NAME,
    # A `lave` prompt has less than 1 000 tokens. A higher limit would reserve memory that batches need.
    "--max-model-len": "4096",
    # The encoders of this process already use some memory.
    "--gpu-memory-utilization": "0.6",
}
_POLL_S: Final = 0.25
# Ignore the user's proxy, because the server is on this machine.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class JudgeServer:
    """An OpenAI-compatible server."""

    url: str
    model: str


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The user's choice of a judge."""

    server: JudgeServer | None = None
    weights: Path | None = None


@dataclass(slots=True)
class _Rated:
    items: int = 0
    read_tokens: int = 0
    written_tokens: int = 0
    untold: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def count(self, result: MetricScore) -> None:
        if result.score is None:
            self.failures[result.status.name] += 1
            return
        self.items += 1
        parts = result.parts
        if not isinstance(parts, JudgeParts) or parts.prompt_tokens is None or parts.generated_tokens is None:
            self.untold += 1
            return
        self.read_tokens += parts.prompt_tokens
        self.written_tokens += parts.generated_tokens


def judged_per_s(
    repository: Path, encoder: str, judge: JudgeServer, seconds: float, *, deadline_s: float = DEADLINE_S
) -> dict[str, Any]:
    """Let the judge rate new items, `AT_A_TIME` at a time, and return a row for the report.

    New items start during `seconds`; then the program waits at most `deadline_s` for the running items. If the judge's
    server needs a key, set GRADEWIRE_JUDGE_TOKEN.

    Raises:
        RuntimeError: No item was rated.
    """
    flags = {
        "device": "cpu",
        "default-model": encoder,
        "judge-backend": "openai",
        "judge-url": judge.url,
        "judge-remote-model": judge.model,
        "judge-max-in-flight": str(AT_A_TIME),
        "judge-timeout-s": str(deadline_s),
    }
    with serving(repository, flags) as address:
        return {"judge": judge.model, **asyncio.run(_rate(address, seconds, deadline_s))}


async def _rate(address: str, seconds: float, deadline_s: float) -> dict[str, Any]:
    rated = _Rated()
    async with AsyncClient(address) as client:
        # For the first item, gradewire opens the judge, whose server computes the prompts' common prefix.
        (first,) = await client.score(items_of("first", 1), METRIC, deadline_s=deadline_s)
        if first.scores[METRIC].score is None:
            result = first.scores[METRIC]
            raise RuntimeError(f"the judge did not rate an item: {result.status.name}: {result.message}")
        began_s = time.perf_counter()

        async def rate_on(caller: int) -> None:
            for calls in itertools.count(1):
                try:
                    (item,) = await client.score(items_of(f"{caller} {calls}", 1), METRIC, deadline_s=deadline_s)
                except GradewireError as error:
                    rated.failures[type(error).__name__] += 1
                else:
                    rated.count(item.scores[METRIC])
                if time.perf_counter() >= began_s + seconds:
                    return

        await asyncio.gather(*(rate_on(caller) for caller in range(AT_A_TIME)))
        took_s = time.perf_counter() - began_s
    if not rated.items:
        raise RuntimeError(f"the judge rated only the first item: {_said(rated.failures)}")
    told = not rated.untold
    return {
        "metric": METRIC,
        "items at a time": AT_A_TIME,
        "deadline of an item, s": deadline_s,
        "items": rated.items,
        "items/s": round(rated.items / took_s, 2),
        "tokens read/s": round(rated.read_tokens / took_s) if told else NOT_TOLD,
        "tokens written/s": round(rated.written_tokens / took_s) if told else NOT_TOLD,
        "failed": rated.failures.total(),
        "why": _said(rated.failures),
    }


def _said(failures: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in failures.most_common())


def vllm_command() -> list[str]:
    """Return the command that serves a model, either `vllm` or this Python's module; [] without vLLM."""
    command = shutil.which("vllm")
    if command is not None:
        return [command, "serve"]
    found = importlib.util.find_spec("vllm")
    return [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve"] if found is not None else []


@contextmanager
def vllm_serving(command: Sequence[str], weights: Path, *, start_s: float = START_S) -> Iterator[JudgeServer]:
    """Start vLLM, wait until it is healthy, and stop it with all its processes.

    Raises:
        RuntimeError: vLLM stopped, or was not healthy in `start_s`; the message contains the end of its log.
    """
    port = free_port()
    options = [text for pair in _OPTIONS.items() for text in pair]
    arguments = [*command, str(weights), *options, "--port", str(port)]
    with (
        tempfile.TemporaryFile("w+") as log,
        # A separate session puts all vLLM processes in one group, which has the first process's ID.
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
    # vLLM must not import a pack's packages, because vLLM needs other versions.
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [each for each in path if each and not Path(each).resolve().is_relative_to(_ROOT)]
    here = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "PYTHONPATH": os.pathsep.join(others)}
    return {**os.environ, **here}


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str, start_s: float, log: IO[str]) -> None:
    ends_s = time.monotonic() + start_s
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"vLLM stopped with exit status {process.returncode}: {_end_of(log)}")
        try:
            with _OPENER.open(url, timeout=5):
                return
        except OSError:  # not ready: nothing listens on the port, or the reply is 503
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
    with suppress(ProcessLookupError):  # usually, vLLM has already stopped its processes
        os.killpg(process.pid, signal.SIGKILL)
