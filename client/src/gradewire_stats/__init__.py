"""Statistics for evaluation. Functions accept arrays.

- `agreement` compares metrics with labels, and `curves` draws their ROC and calibration curves. `preferences` compares
  choices between two answers with annotators' choices.
- `flips` measures metrics under small changes: one changed place, or an edit that keeps an answer right.
- `model_ranks`, `model_accuracy`, `knvqa` and `ave` compute tables from papers about models and evaluators.
- `annotators` measures agreement between annotators, `consensus` combines their labels, and `estimated_mean` estimates
  a mean from few labels and many scores.
- `calibration` fits thresholds and probabilities to labels, `comparison` compares runs and models without labels, and
  `ratings` computes Elo and Bradley-Terry ratings. `bootstrap` makes the draws for all intervals.
"""

from contextlib import AbstractContextManager
from importlib.util import find_spec
from types import ModuleType

if find_spec("numpy") is None:
    raise ModuleNotFoundError("gradewire_stats needs numpy. Run: pip install 'gradewire[agree]'", name="numpy")


class MissingScipyError(ImportError):
    """Raised when scipy or threadpoolctl is not installed. The message says how to install the package."""


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

    On a busy machine, small matrix products lose more time waiting for a second core than they gain.

    Raises:
        MissingScipyError: threadpoolctl is not installed.
    """
    try:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingScipyError("agreement needs threadpoolctl. Run: pip install 'gradewire[agree]'") from error
    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits
