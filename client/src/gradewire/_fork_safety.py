"""Keeps a forked child from destroying objects that wait for threads of its parent."""


def keep_for_good(thing: object) -> None:
    """Keeps an object and all it holds from ever being destroyed.

    An encoder's session or a gRPC channel made before a fork waits, when it is destroyed in the child, for threads that
    only the parent has: the child would hang or crash.
    """
    import ctypes  # noqa: PLC0415 - needed in forked children only

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
