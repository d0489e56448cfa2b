"""Start and stop a Triton server, and clean up after it."""

import hashlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from gradewire_models.judges.description import DESCRIPTION_FILE
from gradewire_models.repository.config import CONFIG_FILE, served_from_file
from gradewire_triton.environment import TritonEnvironment
from gradewire_triton.state import Addresses, TritonStartError, why_not_ready

_log = logging.getLogger("gradewire.triton")

# Tell the kernel (PR_SET_PDEATHSIG) to send SIGINT when the parent ends, then run the program.
_LAUNCH = (
    f"import ctypes, os, sys; ctypes.CDLL(None).prctl(1, {int(signal.SIGINT)}); os.execv(sys.argv[1], sys.argv[1:])"
)

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps POSIX shared memory
_SERVER = b"tritonserver"
_STUB = b"triton_python_backend_stub"

_EXIT_TIMEOUT_S = 10
"""Maximum seconds for which a stopping server waits for running requests."""
_POLL_S = 0.05
_SHOWN_LINES = 12
_EMULATED = ("onnxruntime", "vllm")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a Triton server; port 0 means any free port.

    Attributes:
        models: Names of the models to load; () means all models in the repository that need no GPU.
        host: Address to listen on. Triton has no authentication, so use the loopback or a firewall.
        poll_s: Seconds between checks of the repository, for a server that loads all models and follows changes. With
            0, Triton loads and unloads models only on request.
        judges: The repository of judges, for `models` that are judges.
    """

    repository: Path
    models: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    grpc_port: int = 0
    http_port: int = 0
    metrics_port: int = 0
    poll_s: int = 0
    judges: Path | None = None

    def model_names(self) -> tuple[str, ...]:
        """Return the names of the models that Triton loads at start.

        Raises:
            OSError: A config.pbtxt is not readable.
            ValueError: A config.pbtxt is malformed.
        """
        found = sorted(self.repository.glob(f"[!.]*/{CONFIG_FILE}"))
        return self.models or tuple(
            path.parent.name for path in found if "KIND_GPU" not in served_from_file(path).kinds
        )

    def judge_names(self) -> tuple[str, ...]:
        """Return the names of the `models` that are judges."""
        judges = self.judges
        return () if judges is None else tuple(n for n in self.models if (judges / n / DESCRIPTION_FILE).is_file())

    def repositories(self) -> list[Path]:
        """Return the repositories that contain the models. That of the judges is used only if a judge is named.

        Raises:
            TritonStartError: A named judge has no files for Triton.
        """
        named = self.judge_names()
        if self.judges is None or not named:
            return [self.repository]
        for name in named:
            if not (self.judges / name / CONFIG_FILE).is_file():
                raise TritonStartError(
                    f"judge {name!r} has no graph for Triton in {self.judges}. Run: gradewire models build {name}"
                )
        return [self.repository, self.judges]


def command_line(options: ServerOptions, *, backends: Path, shm_prefix: str) -> list[str]:
    """Return the arguments for ``tritonserver``; names of the server's shared memory files start with `shm_prefix`."""
    control = (
        ["--model-control-mode=poll", f"--repository-poll-secs={options.poll_s}"]
        if options.poll_s
        else ["--model-control-mode=explicit", *(f"--load-model={name}" for name in options.model_names())]
    )
    return [
        *(f"--model-repository={each.absolute()}" for each in options.repositories()),
        f"--backend-directory={backends}",
        f"--backend-config=python,shm-region-prefix-name={shm_prefix}",
        # Auto-completion would start every model twice, and our configurations are complete.
        "--disable-auto-complete-config",
        "--allow-gpu-metrics=false",
        f"--exit-timeout-secs={_EXIT_TIMEOUT_S}",
        f"--grpc-address={options.host}",
        f"--http-address={options.host}",
        f"--metrics-address={options.host}",
        f"--grpc-port={options.grpc_port}",
        f"--http-port={options.http_port}",
        f"--metrics-port={options.metrics_port}",
        *control,
    ]


def start_child(
    program: Path, arguments: Sequence[str], *, variables: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a program that gets SIGINT when this process ends, but not when a user presses Ctrl-C in the terminal.

    The program's environment contains only `variables`. Its output overwrites `log`.

    Raises:
        OSError: The program cannot be started, or the log is not writable.
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

    # The kernel sends SIGINT when the starting thread ends, so this thread waits for the child.
    threading.Thread(target=start_and_stay, name="triton", daemon=True).start()
    return started.result()


def _owners(shm_prefix: str, program: bytes) -> list[int]:
    # Search command lines for the prefix, because the system may have reused process IDs.
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, *arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:  # the process ended, or belongs to another user
            continue
        if name.rpartition(b"/")[2] == program and any(shm_prefix.encode() in argument for argument in arguments):
            found.append(int(entry.name))
    return found


class TritonProcess:
    """A Triton server: `with TritonProcess(environment, options, state) as triton: triton.addresses.grpc`.

    Only one server at a time may use `state`, the directory for the log and the backends. Each start removes the
    leftovers of a killed server.
    """

    def __init__(self, environment: TritonEnvironment, options: ServerOptions, state: Path) -> None:
        self.options = options
        self.state = state.absolute()
        self.log_path = self.state / "triton.log"
        self._environment = environment
        # The prefix depends only on the path, so that the next start finds leftovers.
        self._shm_prefix = f"gradewire_{hashlib.sha256(str(self.state).encode()).hexdigest()[:12]}_"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The server's process ID."""
        return self._running.pid

    @property
    def addresses(self) -> Addresses:
        """The server's addresses, which stay the same after a restart."""
        options = self.options
        return Addresses(
            grpc=f"{options.host}:{options.grpc_port}",
            http=f"http://{options.host}:{options.http_port}",
            metrics=f"http://{options.host}:{options.metrics_port}/metrics",
            log=str(self.log_path),
        )

    def __enter__(self) -> Self:
        self.start()
        self.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server without waiting until it is ready; a restart uses the same ports.

        When this process ends for any reason, the kernel signals the server to stop.
        """
        self.clean()
        backends = self._lay_out_backends()
        # If another program takes a free port before Triton does, Triton reports the error at start.
        self.options = _with_ports(self.options)
        arguments = command_line(self.options, backends=backends, shm_prefix=self._shm_prefix)
        if self.log_path.exists():
            self.log_path.replace(self.log_path.with_suffix(".log.1"))
        self._process = start_child(
            self._environment.server, arguments, variables=self._environment.variables(), log=self.log_path
        )

    def wait_until_ready(self, timeout_s: float = 60.0) -> None:
        """Wait until the server and all its models are ready.

        Triton's Python backend sometimes aborts the server while instances start (boost::interprocess::lock_exception).
        After an abort, the server is started once more.

        Raises:
            TritonStartError: The server ended, or was not ready in time and was stopped.
        """
        give_up, aborts = time.monotonic() + timeout_s, 0
        while why_not_ready(self.addresses, timeout_s=2.0):
            if self._running.poll() == -signal.SIGABRT and not aborts:
                aborts += 1
                _log.warning("Triton aborted at its start and is started once more; %s", self.end_of_log())
                self.start()
            elif self._running.poll() is not None:
                self.clean()
                raise TritonStartError(f"Triton stopped with exit code {self._running.returncode}; {self.end_of_log()}")
            if time.monotonic() > give_up:
                self.stop(timeout_s=1.0)
                raise TritonStartError(f"Triton was not ready within {timeout_s:g} s; {self.end_of_log()}")
            time.sleep(_POLL_S)

    def stub_pids(self) -> list[int]:
        """Return the IDs of the processes that run the models, one per instance."""
        return _owners(self._shm_prefix, _STUB)

    def shared_memory(self) -> list[Path]:
        """Return the server's shared memory files."""
        return list(_SHARED_MEMORY.glob(f"{self._shm_prefix}*"))

    def is_running(self) -> bool:
        """Return True if the server process is running."""
        return self._process is not None and self._process.poll() is None

    def wait(self) -> int:
        """Wait until the server has ended; return its exit code."""
        return self._running.wait()

    def stop(self, timeout_s: float = 20.0) -> None:
        """Let running requests finish, stop the server (with SIGKILL after `timeout_s`) and clean up."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self.clean()

    def kill(self) -> None:
        """Kill the server as in a crash; stubs and shared memory stay until you call `clean`."""
        self._running.kill()
        self._running.wait()

    def clean(self) -> None:
        """Kill any server and stubs that still use this state directory, and remove their shared memory."""
        for program in (_SERVER, _STUB):
            for pid in _owners(self._shm_prefix, program):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for path in self.shared_memory():
            path.unlink(missing_ok=True)

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server was never started")
        return self._process

    def _lay_out_backends(self) -> Path:
        # Copy the backend, because Triton rejects a backend library that is a link.
        backends = self.state / "backends"
        shutil.rmtree(backends, ignore_errors=True)
        shutil.copytree(self._environment.python_backend, backends / "python", ignore=shutil.ignore_patterns("*.pyc"))
        shutil.copy2(self._environment.python_stub, backends / "python")
        for name in _EMULATED:
            (backends / name).mkdir()
            program = files("gradewire_triton").joinpath("emulated", name, "model.py")
            (backends / name / "model.py").write_bytes(program.read_bytes())
        # Link to the installed package, which has 100 MB and depends on no other package.
        llama = find_spec("xllamacpp")
        if llama is not None and llama.submodule_search_locations:
            (backends / "vllm" / "xllamacpp").symlink_to(llama.submodule_search_locations[0])
        return backends

    def end_of_log(self) -> str:
        """Return the log's path and last lines."""
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        # Skip Triton's tables, because errors are on separate lines.
        shown = [line for line in lines if line.strip() and not line.startswith(("+", "|"))][-_SHOWN_LINES:]
        return f"the end of {self.log_path}:\n" + "\n".join(shown)


def _with_ports(options: ServerOptions) -> ServerOptions:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(3)]
        for probe in probes:
            probe.bind((options.host, 0))
        grpc, http, metrics = (int(probe.getsockname()[1]) for probe in probes)
    return replace(
        options,
        grpc_port=options.grpc_port or grpc,
        http_port=options.http_port or http,
        metrics_port=options.metrics_port or metrics,
    )
