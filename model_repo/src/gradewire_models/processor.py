"""Read this processor's instruction set."""

import platform
from pathlib import Path
from typing import Final

CPU_INFO: Final = Path("/proc/cpuinfo")
"""Linux's description of the processors."""
_VNNI = frozenset({"avx512_vnni", "avx_vnni"})


def instructions(cpu_info: Path = CPU_INFO) -> frozenset[str]:
    """Return the flags that Linux lists for an x86 processor, or frozenset() for other processors.

    Raises:
        OSError: The file is not readable, for example because the system is not Linux.
    """
    with cpu_info.open(encoding="utf-8", errors="replace") as lines:
        flags = next((line.partition(":")[2] for line in lines if line.startswith("flags")), "")
    return frozenset(flags.split())


def computes_int8() -> bool:
    """Return True on x86 processors; int8 judges are not tested on other processors, such as ARM."""
    return platform.machine() in {"x86_64", "AMD64"}


def has_vnni(cpu_info: Path = CPU_INFO) -> bool:
    """Return True if this x86 processor has VNNI, instructions that multiply 8-bit integers exactly.

    Return False on other processors, and without ``/proc/cpuinfo``.
    """
    if not computes_int8():
        return False
    try:
        return not _VNNI.isdisjoint(instructions(cpu_info))
    except OSError:
        return False
