"""Optional and slow imports, which the extra `agree` brings."""

from contextlib import AbstractContextManager
from types import ModuleType


class MissingScipyError(ImportError):
    """scipy or threadpoolctl is not installed; the message says how to get it."""


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


def one_blas_thread() -> AbstractContextManager[object]:
    """Keeps matrix products on one thread inside, and the trees of scikit-learn where that is imported already.

    Small ones lose more by waiting for busy cores than they gain: beside other programs trees of 500 rows took fifty
    times as long on two threads, nearly all of it waiting.

    Raises:
        MissingScipyError: threadpoolctl is not installed.
    """
    try:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingScipyError("agreement needs threadpoolctl: pip install 'gradewire[agree]'") from error
    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits
