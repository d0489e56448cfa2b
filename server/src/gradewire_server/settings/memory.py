"""What the server may use of memory, and who gets how much of it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass as plain_dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic.dataclasses import dataclass

from gradewire_server.settings.setting import GROUP, Setting
from gradewire_server.settings.types import MIB, BytesOrAuto

_CGROUP_FILES: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Of a container: what version 2 and version 1 of control groups say."""
_MACHINE_SHARE: Final = 0.75
"""Where no container sets a limit: the rest is for the system, the disk's cache and the judge's worker."""


@dataclass(frozen=True, slots=True, config=GROUP)
class MemoryConfig:
    """What everything together may take."""

    limit_bytes: Annotated[
        BytesOrAuto,
        Setting("memory_limit", "Memory of the whole process; 0: what its container has, else 3/4 of the machine's."),
    ] = 0


@plain_dataclass(frozen=True, slots=True)
class _Share:
    """Part of the memory beside the process itself that a setting gets where nobody sets it.

    Attributes:
        divisor: That memory is divided by it.
        most_bytes: More is never needed.
    """

    divisor: int
    most_bytes: int


_SHARES: Final[Mapping[str, _Share]] = {
    "memory_max_bytes": _Share(8, 256 * MIB),
    "max_bytes_in_flight": _Share(8, 256 * MIB),
    "max_stream_bytes": _Share(8, 256 * MIB),
}
_LEAST_SHARE_BYTES: Final = 16 * MIB
_PROCESS_BYTES: Final = 384 * MIB
"""Of a server with the default encoder, before anybody calls."""


def usable_memory(files: tuple[Path, ...] = _CGROUP_FILES) -> int:
    """Bytes that this process may use: the container's limit where there is one, else a share of the machine's."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in files:
        try:
            limit = int(file.read_text())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if limit < machine:
            return limit
    return int(machine * _MACHINE_SHARE)


def with_shares(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the limit and the shares of it in the place of zeros.

    Args:
        given: The value of every setting by its name.
    """
    limit = given["memory_limit"] or usable_memory()
    shares = {
        name: max(_LEAST_SHARE_BYTES, min(share.most_bytes, (limit - _PROCESS_BYTES) // share.divisor))
        for name, share in _SHARES.items()
        if not given[name]
    }
    return {**given, "memory_limit": limit, **shares}
