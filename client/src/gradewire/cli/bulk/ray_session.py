"""A Ray of our own on this machine, or a cluster that is there."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
from typing import TYPE_CHECKING, Any, Final

from gradewire.cli.problems import InputError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OBJECT_STORE_BYTES: Final = 256 << 20
"""Of a Ray of our own: what is on its way between reader and workers is a few parts, a megabyte each."""
_HOST_PORT: Final = re.compile(r"(?:ray://)?\[?(?P<host>[^\]/]+?)\]?:(?P<port>\d+)")
_REACHED_S: Final = 10.0
_START_TRIES: Final = 3
_AUTH_MODE: Final = "RAY_AUTH_MODE"


def _check_reachable(address: str) -> None:
    """Refuses an address where nobody listens; Ray itself would try for minutes.

    Raises:
        UnreachableError: Nobody does; other forms of address are left to Ray.
    """
    if (found := _HOST_PORT.fullmatch(address)) is None:
        return
    try:
        socket.create_connection((found["host"], int(found["port"])), timeout=_REACHED_S).close()
    except OSError as error:
        raise UnreachableError(f"--ray-address {address}: no Ray answers there ({error.strerror or error})") from error


def import_ray() -> Any:
    """The module; raises InputError where the extra is not installed."""
    # Ray reports usage to its makers unless it is told not to before it is imported.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # What its processes write would stand between the lines of progress; its own log files have it.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # It warns of a change of a later version, which concerns programs that use GPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray  # noqa: PLC0415 - optional and slow to import
        import ray.data  # noqa: PLC0415 - as above
    except ImportError as error:
        raise InputError(f"bulk needs {error.name}: pip install 'gradewire[ray]'") from error
    return ray


def _init(ray: Any, address: str, told: dict[str, Any]) -> None:
    """Connects, or starts Ray; on a busy machine its node may be longer in coming up than Ray itself waits for it."""
    for tries_left in reversed(range(_START_TRIES)):
        try:
            ray.init(address=address, **told)
        except Exception as error:
            # A bare Exception says that alone, and everything else has a type.
            if type(error) is not Exception or not tries_left:
                raise
            ray.shutdown()
        else:
            return


def cores_by_machine(ray: Any) -> list[int]:
    """Cores of each machine that has any; one, where none has: a cluster may start its first when a worker wants it."""
    cores = (int(machine["Resources"].get("CPU", 0)) for machine in ray.nodes() if machine["Alive"])
    return [each for each in cores if each] or [1]


@contextlib.contextmanager
def ray_session(address: str | None, cores: int) -> Iterator[Any]:
    """The module, connected.

    Args:
        address: Of a cluster (HOST:PORT, ray://HOST:PORT, or auto); None: starts Ray here and ends it at the end.
        cores: Of a Ray that is started here.

    Raises:
        InputError: Ray is not installed, or cannot be started.
        UnreachableError: There is no cluster at the address.
    """
    ray = import_ray()
    if address is not None:
        _check_reachable(address)
    told: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        told |= {"num_cpus": cores, "include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    try:
        _init(ray, "local" if address is None else address, told)
    except ConnectionError as error:
        # Ray shows the user's token to an address that is named only where it is told to.
        hint = "" if _AUTH_MODE in os.environ else f"; where the cluster asks for Ray's token, set {_AUTH_MODE}=token"
        raise UnreachableError(f"--ray-address {address}: {error}{hint}") from error
    except Exception as error:
        raise InputError(f"Ray cannot be started: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
