"""What this machine's processor can do."""

import platform
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")
_EXACT = frozenset({"avx512_vnni", "avx_vnni"})


def multiplies_int8_exactly(cpu_info: Path = _CPU_INFO) -> bool:
    """Whether the int8 form of a judge is right and quick here: an x86 processor with VNNI.

    Without these instructions ONNX Runtime adds pairs of products in 16 bits, which saturates: numbers come out wrong,
    silently. Other processors (ARM) and systems without ``/proc/cpuinfo`` were not at hand, so the answer is no.

    Args:
        cpu_info: Linux's description of the processors.
    """
    if platform.machine() not in {"x86_64", "AMD64"}:
        return False
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return not _EXACT.isdisjoint(flags)
