"""scipy, an optional and slow import."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


class MissingScipyError(ImportError):
    """scipy is not installed; the message says how to get it."""


def scipy_stats() -> ModuleType:
    """`scipy.stats`, imported when first needed because it takes a second.

    Raises:
        MissingScipyError: scipy is not installed.
    """
    try:
        from scipy import stats  # noqa: PLC0415 - an optional, slow import
    except ImportError as error:
        raise MissingScipyError("agreement needs scipy: pip install 'gradewire[agree]'") from error
    return stats
