"""What this machine's processor can do."""

import platform
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")
_VNNI = frozenset({"avx512_vnni", "avx_vnni"})


def computes_int8() -> bool:
    """Whether the int8 form of a judge is right here: an x86 processor. Others (ARM) were not at hand."""
    return platform.machine() in {"x86_64", "AMD64"}


def has_vnni(cpu_info: Path = _CPU_INFO) -> bool:
    """Whether this x86 processor has instructions for products of 8-bit integers.

    The answer is no where nothing is known: on other processors, and on systems without ``/proc/cpuinfo``.

    Args:
        cpu_info: Linux's description of the processors.
    """
    if not computes_int8():
        return False
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return not _VNNI.isdisjoint(flags)
