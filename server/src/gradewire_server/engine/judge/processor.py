"""Whether this processor multiplies 8-bit integers exactly and fast."""

import platform
from pathlib import Path
from typing import Final

_CPU_INFO: Final = Path("/proc/cpuinfo")
_EXACT: Final = {"avx512_vnni", "avx_vnni", "asimddp"}
"""Dot products of bytes into 32 bits. Older x86 instructions for the same saturate at 16 bits: other numbers."""


def computes_int8_well(cpu_info: Path = _CPU_INFO) -> bool:
    """Whether the int8 form of a judge gives its own numbers here: AVX-512 or AVX VNNI, or Arm's dot product."""
    if platform.system() == "Darwin":
        return platform.machine() == "arm64"
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return not _EXACT.isdisjoint(flags.split())
