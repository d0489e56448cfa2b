"""Safety after a fork: a child neither uses nor destroys what it inherits of gRPC and of its parent's threads."""

import os
import sys
import weakref
from typing import Protocol

from gradewire.errors import ForkedClientError

_GRPC_CORE = "grpc._cython.cygrpc"


class Forgetful(Protocol):
    """An object that holds what a forked child must not touch."""

    def forget(self) -> None:
        """Called in every forked child, before anything else runs there: starts afresh."""


_forgetful: "weakref.WeakSet[Forgetful]" = weakref.WeakSet()
_grpc_is_inherited = False


def forget_in_children(thing: Forgetful) -> None:
    """Have `thing.forget` called in every child that this process forks while the thing lives."""
    _forgetful.add(thing)


def check_grpc_usable() -> None:
    """Refuse to use gRPC where an ancestor forked this process after it had loaded gRPC.

    Its core then crashes or hangs here in most cases, whether its support for forks is on or off (ADR 20).

    Raises:
        ForkedClientError: It is so.
    """
    if _grpc_is_inherited:
        raise ForkedClientError(
            "gRPC was loaded before this process was forked and does not work here: make the first call after the "
            "fork, or start the process by spawn or forkserver (of a data loader: multiprocessing_context='spawn')"
        )


def keep_for_good(thing: object) -> None:
    """Keep an object and all it holds from ever being destroyed.

    An encoder's session or a gRPC channel made before a fork waits, when it is destroyed in the child, for threads that
    only the parent has: the child would hang or crash.
    """
    import ctypes  # noqa: PLC0415 - needed in forked children only

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _after_fork() -> None:
    global _grpc_is_inherited  # noqa: PLW0603 - a fact of the process
    _grpc_is_inherited = _grpc_is_inherited or _GRPC_CORE in sys.modules
    for thing in list(_forgetful):
        thing.forget()


os.register_at_fork(after_in_child=_after_fork)

# gRPC reads it when it is imported. Its own handlers of forks, on otherwise, bring threads back in the child and crash
# one child in six of a process with a client at work (ADR 20); whoever needs them for other clients sets it to 1.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
