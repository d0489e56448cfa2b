"""Statistics of evaluation, usable alone: arrays in, numbers out; no files, no terminal, nothing of the client.

- `agreement`: metrics beside labels; `curves`: ROC and calibration of one metric; `preferences`: pairs of answers of
  which people chose one.
- `systems`, `model_accuracy`, `knvqa`, `ave`: tables of models, evaluators and descriptions, as papers have them.
- `annotators`: agreement between people; `consensus`: one label out of several; `estimated_mean`: a mean from a few
  labels and many scores.
- `calibration`: probabilities fitted on labels; `comparison`: runs and models without labels; `ratings`: Elo and
  Bradley-Terry. `bootstrap`: the draws behind every interval.
"""

from contextlib import AbstractContextManager
from importlib.util import find_spec
from types import ModuleType

if find_spec("numpy") is None:
    raise ModuleNotFoundError("gradewire_stats needs numpy: pip install 'gradewire[agree]'", name="numpy")


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
    """Keep matrix products on one thread inside, and the trees of scikit-learn where that is imported already.

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
