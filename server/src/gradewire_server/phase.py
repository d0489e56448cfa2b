"""The phase of a process: whether it loads, serves or ends."""

from enum import StrEnum


class Phase(StrEnum):
    """Loading, serving, draining (calls are still taken), stopping (calls in flight may finish)."""

    LOADING = "loading"
    SERVING = "serving"
    DRAINING = "draining"
    STOPPING = "stopping"
