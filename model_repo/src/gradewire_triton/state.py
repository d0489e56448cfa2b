"""Manage the state directory, which contains a Triton server's log, backends and addresses."""

import http.client
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

from gradewire_models.errors import ModelError
from gradewire_models.locks import exclusive_if_free


class TritonStartError(ModelError):
    """Raised when Triton stopped or was not ready in time. The message ends with Triton's last log lines."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """A server's addresses: HOST:PORT for gRPC, URLs for HTTP and Prometheus metrics, and the log's path."""

    grpc: str
    http: str
    metrics: str
    log: str


def why_not_ready(addresses: Addresses, *, timeout_s: float) -> str:
    """Return the reason why a server or one of its models is not ready, or "" if all are ready."""
    url = f"{addresses.http}/v2/health/ready"
    connection = http.client.HTTPConnection(addresses.http.removeprefix("http://"), timeout=timeout_s)
    try:
        connection.request("GET", "/v2/health/ready")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"{url} does not answer within {timeout_s:g} s ({error})"
    finally:
        connection.close()
    return "" if status == http.HTTPStatus.OK else f"{url} answers {status}"


def default_state() -> Path:
    """Return the default state directory."""
    return platformdirs.user_state_path("gradewire") / "triton"


class StateDirectory:
    """A directory that only one process at a time can use; the process holds a lock on a file in the directory."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock_path = self.path / "lock"
        self._addresses_path = self.path / "addresses.json"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Reserve the directory for this process during the block.

        Raises:
            TritonStartError: Another process uses the directory.
            OSError: The directory cannot be created or is not writable.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock_path.touch(0o644)
        with exclusive_if_free(self._lock_path) as held:
            if not held:
                raise TritonStartError(
                    f"process {self.user()} already runs a Triton server in {self.path}. Stop it, or use a different "
                    "directory with --state"
                )
            self._lock_path.write_text(str(os.getpid()), encoding="ascii")
            self._addresses_path.unlink(missing_ok=True)
            try:
                yield
            finally:
                self._addresses_path.unlink(missing_ok=True)

    def user(self) -> int | None:
        """Return the ID of the process that uses the directory, or None."""
        try:
            with exclusive_if_free(self._lock_path) as free:
                return None if free else int(self._lock_path.read_text(encoding="ascii") or "0") or None
        except FileNotFoundError:
            return None

    def announce(self, addresses: Addresses) -> None:
        """Record the addresses of the ready server."""
        fresh = self._addresses_path.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(addresses)), encoding="utf-8")
        fresh.replace(self._addresses_path)

    def addresses(self) -> Addresses | None:
        """Return the server's addresses, or None if no server is ready."""
        if self.user() is None:
            return None
        try:
            return Addresses(**json.loads(self._addresses_path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
