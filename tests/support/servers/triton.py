"""The real Triton server for tests, over any model repository, on free ports of this machine."""

import json
import logging
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gradewire_triton import ServerOptions, TritonProcess, ensure_environment

_log = logging.getLogger(__name__)


class TritonServer:
    """`with TritonServer(tmp_path, repository) as triton: triton.url`.

    Args:
        directory: Where it keeps its log and its backends; one server per directory.
        repository: Triton model repository.
        models: Names of the models to load; empty loads all.
        poll_s: See `ServerOptions`.
        judges: See `ServerOptions`.
    """

    def __init__(
        self,
        directory: Path,
        repository: Path,
        *,
        models: Sequence[str] = (),
        poll_s: int = 0,
        judges: Path | None = None,
    ) -> None:
        environment = ensure_environment(report=_log.info)
        options = ServerOptions(repository, tuple(models), poll_s=poll_s, judges=judges)
        self._process = TritonProcess(environment, options, directory)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()  # in order it takes 4 s longer

    @property
    def url(self) -> str:
        """HOST:PORT of gRPC, the same after `kill` and `start`."""
        return self._process.addresses.grpc

    @property
    def http_url(self) -> str:
        return self._process.addresses.http

    @property
    def metrics_url(self) -> str:
        return self._process.addresses.metrics

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        """Starts it, on the same ports as before if it ran already; returns when it and its models are ready."""
        self._process.start()
        self._process.wait_until_ready()

    def stop(self) -> None:
        """Stops it in order; nothing is left of it."""
        self._process.stop()

    def kill(self) -> None:
        """Ends the server at once, as a crash would, and removes what is left of it."""
        self._process.kill()
        self._process.clean()

    def crash(self) -> None:
        """Ends the server at once; its stubs and its shared memory stay until the next `start` or `kill`."""
        self._process.kill()

    def pause(self) -> None:
        """Stops the process without closing its sockets: calls hang."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Ends `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    def stub_pids(self) -> list[int]:
        """Processes that run the models, one per instance."""
        return self._process.stub_pids()

    @contextmanager
    def stopped_stubs(self) -> Iterator[None]:
        """Takes requests and computes none. After a second the server calls its stubs unhealthy."""
        pids = self.stub_pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def shared_memory(self) -> list[Path]:
        """Its files of shared memory."""
        return self._process.shared_memory()

    def kill_stubs(self) -> None:
        """Ends the processes that run the models; the server lives on, and still says that they are ready."""
        for pid in self.stub_pids():
            os.kill(pid, signal.SIGKILL)

    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process.is_running()

    def is_model_ready(self, model: str) -> bool:
        """What Triton says of a model."""
        try:
            self._http(f"/v2/models/{model}/ready")
        except urllib.error.HTTPError as error:
            error.close()
            return False
        return True

    def statistics(self, model: str) -> Mapping[str, Any]:
        """Statistics of the version that serves: ``inference_count`` (rows), ``execution_count`` (batches) and more."""
        versions: list[Mapping[str, Any]] = self._http(f"/v2/models/{model}/stats")["model_stats"]
        return versions[-1]

    def inference_count(self, model: str) -> int:
        """Rows of all batches so far, those of a warm-up left out by Triton."""
        return int(self.statistics(model)["inference_count"])

    def wait_for_inference_count(self, model: str, count: int) -> None:
        """Waits until so many rows are counted: Triton counts a batch shortly after it has answered."""
        give_up = time.monotonic() + 10
        while self.inference_count(model) < count:
            assert time.monotonic() < give_up, f"{self.inference_count(model)} of {count} rows are counted"
            time.sleep(0.02)

    def load(self, model: str) -> None:
        """Loads a model, or what has changed of it."""
        self._http(f"/v2/repository/models/{model}/load", body={})

    def unload(self, model: str) -> None:
        """Unloads a model."""
        self._http(f"/v2/repository/models/{model}/unload", body={})

    def log(self) -> str:
        """What the server has written."""
        return self._process.log_path.read_text()

    def _http(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.http_url + path, data=data, timeout=60) as reply:  # noqa: S310 - our own address
            content = reply.read()
        return json.loads(content) if content else {}
