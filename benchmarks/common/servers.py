"""Start gradewire servers for benchmarks, in separate processes and on free ports."""

import contextlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psutil
from benchmarks.common.ports import free_port
from prometheus_client.parser import text_string_to_metric_families

from gradewire_models.catalog.loading import default_model, grader_models
from gradewire_models.repository.built import default_repository
from gradewire_triton import ServerOptions, TritonProcess, ensure_environment

_STOP_S = 60
GRADEWIRE: Final = str(Path(sys.executable).with_name("gradewire"))
ENGINES = ("embedded", "triton")


@contextmanager
def started(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a process, yield the process and its first line of output, and stop the process."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(command[:3])} ended with exit status {process.wait(_STOP_S)} and no output")
        yield process, line
    finally:
        process.terminate()
        process.wait(timeout=_STOP_S)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def cpu_s(pid: int) -> float:
    """Return a process's CPU seconds so far, without its children."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def whole_cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and its running descendants."""
    used_s = 0.0
    for process in (top := psutil.Process(pid), *top.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used_s += times.user + times.system
    return used_s


def run_gradewire(*arguments: object) -> None:
    """Run the `gradewire` command; if it fails, exit with its code."""
    if code := subprocess.run([GRADEWIRE, *map(str, arguments)], check=False).returncode:
        raise SystemExit(code)


@dataclass(frozen=True)
class Server:
    """A running gradewire server.

    Attributes:
        address: HOST:PORT for gRPC.
        http: Base URL for HTTP.
        triton: Processes of the server's Triton, if any.
        triton_metrics: URL of Triton's metrics; "" without Triton.
    """

    address: str
    http: str
    process: psutil.Process
    triton: Sequence[psutil.Process]
    triton_metrics: str

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples with these `labels`."""
        return _sum(f"{self.http}/metrics", name, labels)

    def triton_metric(self, name: str) -> float:
        """Return the sum of all samples of a Triton metric."""
        return _sum(self.triton_metrics, name, {})


@contextmanager
def start_engine(engine: str, options: Mapping[str, str], *, command: Sequence[str] = (GRADEWIRE,)) -> Iterator[Server]:
    """Start gradewire, with Triton if `engine` needs it, and stop both at the end.

    `options` are flags for `gradewire serve`, without dashes. By default, the cache has no second level, and the server
    stops without a drain window. `command` starts a program with the arguments of `gradewire`.
    """
    with ExitStack() as stack:
        triton: list[psutil.Process] = []
        triton_metrics = ""
        flags = {"port": "0", "http-port": str(free_port()), "disk-directory": "", "drain-s": "0", **options}
        if engine == "triton":
            state = Path(stack.enter_context(TemporaryDirectory()))
            environment = ensure_environment(report=lambda message: print(message, file=sys.stderr))
            models = (default_model().name, grader_models()[0].name)
            backend = TritonProcess(environment, ServerOptions(default_repository(), models), state)
            stack.enter_context(backend)
            triton.append(psutil.Process(backend.pid))
            triton_metrics = backend.addresses.metrics
            flags |= {"backend": "triton", "triton-url": backend.addresses.grpc}
        serve = [*command, "serve", *(text for name, value in flags.items() for text in (f"--{name}", value))]
        process, line = stack.enter_context(started(serve))
        yield Server(
            address=f"127.0.0.1:{line.rsplit(':', 1)[1].split()[0]}",
            http=f"http://127.0.0.1:{flags['http-port']}",
            process=psutil.Process(process.pid),
            triton=triton,
            triton_metrics=triton_metrics,
        )


def _sum(url: str, name: str, labels: Mapping[str, str]) -> float:
    with urllib.request.urlopen(url, timeout=30) as reply:  # noqa: S310 - our own servers
        families = text_string_to_metric_families(reply.read().decode())
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())
