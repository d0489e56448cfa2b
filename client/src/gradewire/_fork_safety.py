"""Keep a forked child from using or destroying gRPC objects and other state that it inherits from its parent."""

import os
import sys
import weakref
from typing import Protocol

from gradewire.errors import ForkedClientError

_GRPC_CORE = "grpc._cython.cygrpc"


class Forgetful(Protocol):
    """An object with state that a forked child must not use."""

    def forget(self) -> None:
        """Drop the inherited state. Every forked child calls this method before it does anything else."""


_forgetful: "weakref.WeakSet[Forgetful]" = weakref.WeakSet()
_grpc_is_inherited = False


def forget_in_children(thing: Forgetful) -> None:
    """Call `thing.forget` in every child that this process forks, until `thing` is garbage-collected."""
    _forgetful.add(thing)


def check_grpc_usable() -> None:
    """Raise ForkedClientError if this process was forked after gRPC was loaded.

    In such a process, gRPC usually crashes or hangs, even with gRPC's fork support (ADR 20).
    """
    if _grpc_is_inherited:
        raise ForkedClientError(
            "gRPC was loaded before this process was forked and does not work here: make the first call after the "
            "fork, or use the start method spawn or forkserver (in a data loader: multiprocessing_context='spawn')"
        )


def keep_for_good(thing: object) -> None:
    """Keep an object, and everything that it references, from ever being destroyed.

    Destroying an encoder session or a gRPC channel waits for threads that exist only in the parent, so a forked child
    would hang or crash.
    """
    import ctypes  # noqa: PLC0415 - needed in forked children only

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _after_fork() -> None:
    global _grpc_is_inherited  # noqa: PLW0603 - state of the process
    _grpc_is_inherited = _grpc_is_inherited or _GRPC_CORE in sys.modules
    for thing in list(_forgetful):
        thing.forget()


os.register_at_fork(after_in_child=_after_fork)

# gRPC reads this variable on import. By default, gRPC restarts threads in a forked child, which crashes one child in
# six if the process has an active client (ADR 20). If other clients need gRPC's fork handlers, set the variable to 1.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
