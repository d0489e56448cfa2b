"""Lets a client process run as soon as there is something to do for it, where server and client share cores.

A reply that waits for the client to get a core would count as the server's latency. Linux gives a thread that asks for
short slices its core at once, and no more of it than before (EEVDF; Linux 6.12 and newer).
"""

import ctypes
import os
import platform
import sys
from typing import Final

_SET_ATTRIBUTES: Final = {"x86_64": 314, "aarch64": 274}
"""Number of `sched_setattr` by machine; the C library has no function for it before glibc 2.41."""
_SLICE_NS: Final = 100_000
"""The shortest that Linux takes."""


class _Attributes(ctypes.Structure):
    """`struct sched_attr`, as `sched_setattr(2)` describes it; policy 0 is that of usual threads."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime_ns", ctypes.c_uint64),
        ("deadline_ns", ctypes.c_uint64),
        ("period_ns", ctypes.c_uint64),
    )


def ask_for_short_slices() -> bool:
    """Asks for this thread and those it starts from now on; returns whether the system took it.

    An older Linux takes it and changes nothing.
    """
    number = _SET_ATTRIBUTES.get(platform.machine())
    if platform.system() != "Linux" or number is None or sys.maxsize < 2**32:
        return False  # elsewhere, and in 32 bits, the numbers are others
    try:
        policy = os.sched_getscheduler(0)
    except OSError:  # a C library or a container without it
        return False
    if policy != os.SCHED_OTHER:
        return False  # somebody chose another one for it
    wanted = _Attributes(size=ctypes.sizeof(_Attributes), nice=os.nice(0), runtime_ns=_SLICE_NS)
    taken: int = ctypes.CDLL(None, use_errno=True).syscall(number, 0, ctypes.byref(wanted), 0)
    return taken == 0
