"""How many processes serve, and what each of them gets of what is set for all together."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic.dataclasses import dataclass

from gradewire_server.settings.compute import usable_cores
from gradewire_server.settings.memory import usable_memory
from gradewire_server.settings.setting import GROUP, Setting
from gradewire_server.settings.surface import SettingsError
from gradewire_server.settings.types import GIB, MIB, CountOrAuto

_CORES_PER_PROCESS: Final = 2
"""One for the event loop of a process, which is Python under one lock, and one for the encoder's runs."""
_MEMORY_PER_PROCESS_BYTES: Final = GIB
_MOST_BY_DEFAULT: Final = 8
_LEAST_BYTES: Final = 16 * MIB
_SUPERVISOR_BYTES: Final = 64 * MIB
_JUDGE_HOST_BYTES: Final = 96 * MIB
"""Of the process that runs the judges, without their workers: those are no part of memory_limit, nor is that of a
server alone."""
_DIVIDED_BYTES: Final = (
    "memory_max_bytes",
    "remembered_results_max_bytes",
    "max_bytes_in_flight",
    "max_stream_bytes",
    "gpu_memory_limit",
)
_DIVIDED_COUNTS: Final = ("max_items_in_flight", "max_streams", "max_connections")


@dataclass(frozen=True, slots=True, config=GROUP)
class ProcessesConfig:
    """How many processes share the port of gRPC."""

    count: Annotated[
        CountOrAuto,
        Setting(
            "processes",
            "Server processes that share the port of gRPC; 0: one for every two cores and GiB of memory_limit, 8 at "
            "most, and one where device is a GPU.",
        ),
    ] = 0
    """With one the server runs in the process that was started, without a supervisor."""


def process_count(given: Mapping[str, Any], *, cores: int | None = None) -> int:
    """How many processes are to serve.

    Args:
        given: The value of every setting by its name, shares of memory resolved.
        cores: That may be used; None: as many as this machine or container has.

    Raises:
        SettingsError: Several are asked for, and cannot serve together with these settings.
    """
    wanted, reason = int(given["processes"]), _why_not_several(given)
    if wanted > 1 and reason:
        raise SettingsError(f"processes above 1 {reason}")
    if wanted or reason:
        return wanted or 1
    if given["device"].startswith("cuda"):
        return 1  # each would hold the model on the GPU and wait for the runs of the others
    by_cores = (usable_cores() if cores is None else cores) // _CORES_PER_PROCESS
    by_memory = given["memory_limit"] // _MEMORY_PER_PROCESS_BYTES
    return int(max(1, min(by_cores, by_memory, _MOST_BY_DEFAULT)))


def _why_not_several(given: Mapping[str, Any]) -> str:
    """Why several processes cannot serve together with these settings; empty where they can."""
    if sys.platform != "linux":
        return "needs Linux, which alone spreads connections over processes that share a port"
    if given["disk_directory"] is None and given["redis_url"] is None:
        return "needs a store that all of them see, for prepared references: set disk_directory or redis_url"
    return ""


def share_of(given: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The settings of one of `count` processes: what is set for all of them together is divided.

    Args:
        given: The value of every setting by its name; zeros stand for shares of memory and for cores.
        count: 2 or more.
    """
    beside = _SUPERVISOR_BYTES + (_JUDGE_HOST_BYTES if given["judge_backend"] == "embedded" else 0)
    cores = usable_cores()
    workers = given["workers"] or max(1, cores // given["intra_op_threads"])
    lone_threads = given["lone_run_threads"] or cores
    divided = {
        "memory_limit": ((given["memory_limit"] or usable_memory()) - beside) // count,
        **{name: max(_LEAST_BYTES, given[name] // count) for name in _DIVIDED_BYTES if given[name]},
        **{name: _divided(given[name], count) for name in _DIVIDED_COUNTS},
        "workers": _divided(workers, count),
        "lone_run_threads": _divided(lone_threads, count),
        "http": False,
        "http_api_port": None,
    }
    return {**given, **divided}


def _divided(whole: int, count: int) -> int:
    return int(-(-whole // count))
