"""Statistics for evaluation: arrays in, values out. Independent of files, terminal and the client.

- `agreement`: metrics against labels; `curves`: ROC and calibration of a metric; `preferences`: pairs of answers with
  annotators' choices.
- `model_ranks`, `model_accuracy`, `knvqa`, `ave`: the tables of models, evaluators and descriptions in papers.
- `annotators`: agreement between annotators; `consensus`: one label from several; `estimated_mean`: a mean from few
  labels and many scores.
- `calibration`: probabilities fitted on labels; `comparison`: runs and models without labels; `ratings`: Elo and
  Bradley-Terry. `bootstrap`: the draws behind every interval.
"""

from contextlib import AbstractContextManager
from importlib.util import find_spec
from types import ModuleType

if find_spec("numpy") is None:
    raise ModuleNotFoundError("gradewire_stats needs numpy. Run: pip install 'gradewire[agree]'", name="numpy")


class MissingScipyError(ImportError):
    """scipy or threadpoolctl is not installed. The message says how to install it."""


def scipy_stats() -> ModuleType:
    """Return `scipy.stats`, imported on first use because the import takes a second.

    Raises:
        MissingScipyError: scipy is not installed.
    """
    try:
        from scipy import stats  # noqa: PLC0415 - an optional, slow import
    except ImportError as error:
        raise MissingScipyError("agreement needs scipy. Run: pip install 'gradewire[agree]'") from error
    return stats


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context manager that limits BLAS, and scikit-learn if it is loaded, to one thread.

    Small matrix products lose more by waiting for busy cores than they gain: on a busy machine, trees of 500 rows took
    fifty times as long on two threads.

    Raises:
        MissingScipyError: threadpoolctl is not installed.
    """
    try:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingScipyError("agreement needs threadpoolctl. Run: pip install 'gradewire[agree]'") from error
    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits
