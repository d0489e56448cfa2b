"""One running Triton server: started, waited for, stopped, and nothing of it left behind."""

import hashlib
import http.client
import shutil
import signal
import socket
import subprocess
import time
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from gradewire_triton.child import start_child
from gradewire_triton.environment import TritonEnvironment
from gradewire_triton.errors import TritonStartError
from gradewire_triton.leftovers import remove_leftovers, shared_memory, stub_pids
from gradewire_triton.server_options import Ports, ServerOptions, command_line

_POLL_S = 0.05
_SHOWN_LINES = 12
_EMULATED = ("onnxruntime", "vllm")


class TritonProcess:
    """`with TritonProcess(environment, options, state) as triton: triton.grpc_url`.

    Args:
        environment: What it runs in.
        options: How it is to run.
        state: Directory for its log and backends; made when it is not there. One server at a time may use it: what an
            earlier one of it left behind, killed perhaps, is removed at start.
    """

    def __init__(self, environment: TritonEnvironment, options: ServerOptions, state: Path) -> None:
        self.options = options
        self.state = state.absolute()
        self.log_path = self.state / "triton.log"
        self._environment = environment
        # Derived, so that the next start in the same directory knows what an earlier one owned.
        self._shm_prefix = f"gradewire_{hashlib.sha256(str(self.state).encode()).hexdigest()[:12]}_"
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: Ports | None = None

    @property
    def pid(self) -> int:
        """Of the server."""
        return self._running.pid

    @property
    def ports(self) -> Ports:
        """Where it listens; kept when it is started again."""
        if self._ports is None:
            raise RuntimeError("never started")
        return self._ports

    @property
    def grpc_url(self) -> str:
        """HOST:PORT of gRPC."""
        return f"{self.options.host}:{self.ports.grpc}"

    @property
    def http_url(self) -> str:
        """Address of HTTP."""
        return f"http://{self.options.host}:{self.ports.http}"

    @property
    def metrics_url(self) -> str:
        """Address of the Prometheus metrics."""
        return f"http://{self.options.host}:{self.ports.metrics}/metrics"

    def __enter__(self) -> Self:
        self.start()
        self.wait_until_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts it and does not wait; on the ports it had before, if it ran before.

        When this process ends, however, the server gets a signal that lets it clean up and end.
        """
        self.clean()
        backends = self._lay_out_backends()
        # A port that somebody else takes between this look and Triton's own is an error at start, with Triton's words.
        self._ports = self._ports or _choose_ports(self.options)
        arguments = command_line(self.options, self._ports, backends=backends, shm_prefix=self._shm_prefix)
        if self.log_path.exists():
            self.log_path.replace(self.log_path.with_suffix(".log.1"))
        self._process = start_child(
            self._environment.server, arguments, variables=self._environment.variables(), log=self.log_path
        )

    def wait_until_ready(self, timeout_s: float = 60.0) -> None:
        """Waits until the server and all its models are ready.

        Raises:
            TritonStartError: It ended, or was not ready in time (it is stopped then).
        """
        give_up = time.monotonic() + timeout_s
        while not self.is_ready():
            if self._running.poll() is not None:
                self.clean()
                raise TritonStartError(f"Triton ended with exit code {self._running.returncode}; {self.last_words()}")
            if time.monotonic() > give_up:
                self.stop(timeout_s=1.0)
                raise TritonStartError(f"Triton was not ready within {timeout_s:g} s; {self.last_words()}")
            time.sleep(_POLL_S)

    def is_ready(self) -> bool:
        """Whether it says that it and its models are ready."""
        connection = http.client.HTTPConnection(self.options.host, self.ports.http, timeout=2.0)
        try:
            connection.request("GET", "/v2/health/ready")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stub_pids(self) -> list[int]:
        """Processes that run the models, one per instance."""
        return stub_pids(self._shm_prefix)

    def shared_memory(self) -> list[Path]:
        """Files of shared memory that are its own."""
        return shared_memory(self._shm_prefix)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the server."""
        self._running.send_signal(number)

    def is_running(self) -> bool:
        """Whether the server's process is there."""
        return self._process is not None and self._process.poll() is None

    def wait(self) -> int:
        """Waits for its end; returns the exit code."""
        return self._running.wait()

    def stop(self, timeout_s: float = 20.0) -> None:
        """Lets requests in flight finish, ends it (SIGKILL after `timeout_s`) and removes what is left of it."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self.clean()

    def kill(self) -> None:
        """Ends the server at once, as a crash would; its stubs and its shared memory stay for a while (`clean`)."""
        self._running.kill()
        self._running.wait()

    def clean(self) -> None:
        """Removes what is left of a server that is gone."""
        remove_leftovers(self._shm_prefix)

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("never started")
        return self._process

    def _lay_out_backends(self) -> Path:
        # Copies: Triton refuses a backend's library that is a link to somewhere else.
        backends = self.state / "backends"
        shutil.rmtree(backends, ignore_errors=True)
        shutil.copytree(self._environment.python_backend, backends / "python", ignore=shutil.ignore_patterns("*.pyc"))
        shutil.copy2(self._environment.python_stub, backends / "python")
        for name in _EMULATED:
            (backends / name).mkdir()
            program = files("gradewire_triton").joinpath("emulated", name, "model.py")
            (backends / name / "model.py").write_bytes(program.read_bytes())
        # Not of Triton's own environment: no other package comes with it, and its 100 MB are there already.
        llama = find_spec("xllamacpp")
        if llama is not None and llama.submodule_search_locations:
            (backends / "vllm" / "xllamacpp").symlink_to(llama.submodule_search_locations[0])
        return backends

    def last_words(self) -> str:
        """The end of its log."""
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        # Tables are for people who read the whole log; what went wrong stands in lines of their own.
        words = [line for line in lines if line.strip() and not line.startswith(("+", "|"))][-_SHOWN_LINES:]
        return f"the end of {self.log_path}:\n" + "\n".join(words)


def _choose_ports(options: ServerOptions) -> Ports:
    sockets = [socket.socket() for _ in range(3)]
    try:
        for probe in sockets:
            probe.bind((options.host, 0))
        free = [int(probe.getsockname()[1]) for probe in sockets]
    finally:
        for probe in sockets:
            probe.close()
    return Ports(options.grpc_port or free[0], options.http_port or free[1], options.metrics_port or free[2])
