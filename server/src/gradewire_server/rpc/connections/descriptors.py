"""File descriptors: each connection takes one, and a server that has none left can take neither calls nor stores."""

import logging
import resource
from typing import Final

_log = logging.getLogger(__name__)

_KEPT_FOR_OTHERS: Final = 128
"""Stores, models, HTTP, threads and the event loop need fewer."""


def raise_descriptor_limit() -> None:
    """Raises the process's limit of open files as far as it may, which systems leave low for old programs' sake."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:  # where the hard limit is said to be endless, and the system has another
        _log.warning("the limit of open files stays at %d: %s", soft, error)


def most_connections(wanted: int) -> int:
    """As many connections as are wanted, or as there are descriptors for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    most = max(1, soft - _KEPT_FOR_OTHERS)
    if most < wanted:
        _log.warning(
            "max_connections is %d, and there are file descriptors for %d: ulimit -n says %d", wanted, most, soft
        )
    return min(wanted, most)
