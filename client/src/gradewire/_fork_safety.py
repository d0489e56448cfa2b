"""Keep a forked child from using or destroying what it inherits from gRPC and its parent's threads."""

import os
import sys
import weakref
from typing import Protocol

from gradewire.errors import ForkedClientError

_GRPC_CORE = "grpc._cython.cygrpc"


class Forgetful(Protocol):
    """An object with state that a forked child must not touch."""

    def forget(self) -> None:
        """Start again. Runs in every forked child before anything else."""


_forgetful: "weakref.WeakSet[Forgetful]" = weakref.WeakSet()
_grpc_is_inherited = False


def forget_in_children(thing: Forgetful) -> None:
    """Call `thing.forget` in every child that this process forks, while the thing lives."""
    _forgetful.add(thing)


def check_grpc_usable() -> None:
    """Refuse to use gRPC if this process was forked after gRPC was loaded.

    Its core then usually crashes or hangs, with and without its support for forks (ADR 20).

    Raises:
        ForkedClientError: This process inherited gRPC.
    """
    if _grpc_is_inherited:
        raise ForkedClientError(
            "gRPC was loaded before this process was forked and does not work here: make the first call after the "
            "fork, or start the process by spawn or forkserver (in a data loader: multiprocessing_context='spawn')"
        )


def keep_for_good(thing: object) -> None:
    """Keep an object and everything it holds from ever being destroyed.

    Destroying an encoder's session or a gRPC channel from before a fork waits for threads that exist only in the
    parent, so the child would hang or crash.
    """
    import ctypes  # noqa: PLC0415 - needed in forked children only

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _after_fork() -> None:
    global _grpc_is_inherited  # noqa: PLW0603 - a fact of the process
    _grpc_is_inherited = _grpc_is_inherited or _GRPC_CORE in sys.modules
    for thing in list(_forgetful):
        thing.forget()


os.register_at_fork(after_in_child=_after_fork)

# gRPC reads this when it is imported. Its fork handlers, on by default, restart threads in the child and crash one
# child in six of a process with an active client (ADR 20). If you need them for other clients, set it to 1.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
