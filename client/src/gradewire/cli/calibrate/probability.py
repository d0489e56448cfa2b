"""`gradewire calibrate --metric correctness`: fits a probability on scored features, and measures the fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.cli.calibrate.fit import AFTER, BEFORE, compared
from gradewire.cli.problems import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire.agreement import AgreementReport
    from gradewire.agreement.fitting.probability import CorrectnessFitResult
    from gradewire.agreement.fitting.stored_form import FittedFeature
    from gradewire.cli.calibrate.fit import Split
    from gradewire.cli.calibrate.rows import LabelledScores

# Of a file without questions nothing can be held out, and SMILE's own verdict begins here.
_SMILE_CUT = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilityFit:
    """A fit of metric `correctness`, and its figures.

    Attributes:
        result: The form that a model stores, figures of its rows (each judged by a fit on other questions), warnings.
        report: `BEFORE` (SMILE) and `AFTER` on the other half of the questions; None without halves.
        further: Further figures of probabilities there, by name.
    """

    result: CorrectnessFitResult
    report: AgreementReport | None
    further: Mapping[str, float]


def fitted_probability(  # noqa: PLR0913 - what is fitted, and how figures are drawn
    split: Split,
    features: Sequence[FittedFeature],
    shape: Sequence[str],
    provenance: Mapping[str, Any],
    *,
    resamples: int,
    seed: int,
) -> ProbabilityFit:
    """Fits on the features of scored rows, and measures the fit on the other half of the questions where there is one.

    Features come in the metric's order; `shape` names the numbers that say what kind of item a row is. The fit carries
    the provenance, which says where it comes from.

    Raises:
        InputError: Scores without features, rows that cannot be fitted on, or scikit-learn is not installed.
    """
    try:
        from gradewire.agreement.fitting.labelled_features import Shapes, checked  # noqa: PLC0415 - the extra `calibrate`
        from gradewire.agreement.fitting.probability import fit_correctness  # noqa: PLC0415 - the same extra

        rows, names = split.fitted, [feature.name for feature in features]
        values = _values(rows.results, (*names, *shape))
        labelled = checked(
            features,
            values[:, : len(names)],
            rows.labels,
            rows.questions,
            sources=rows.sources,
            shapes=Shapes(shape, values[:, len(names) :]),
        )
        found = fit_correctness(labelled, provenance=provenance)
    except ImportError as error:
        missing = f"{error.name}, which is not installed" if error.name else str(error)
        raise InputError(f"fitting a probability needs {missing}: pip install 'gradewire[calibrate]'") from error
    except ValueError as error:
        raise InputError(str(error)) from error
    report, further = None, dict[str, float]()
    if split.held_out is not None:
        report, further = _measured(found.fit, split.held_out, shape, resamples=resamples, seed=seed)
    return ProbabilityFit(result=found, report=report, further=further)


def _measured(
    fit: Mapping[str, Any], rows: LabelledScores, shape: Sequence[str], *, resamples: int, seed: int
) -> tuple[AgreementReport, dict[str, float]]:
    from gradewire.agreement.fitting.probability_figures import brier_score, calibration_error  # noqa: PLC0415 - as above
    from gradewire.agreement.fitting.stored_evaluation import probabilities as judged_by  # noqa: PLC0415 - as above

    names = [feature["name"] for feature in fit["features"]]
    values = _values(rows.results, (*names, *shape))
    probabilities = judged_by(fit, values[:, : len(names)], values[:, len(names) :])
    smile = rows.values("smile")
    scores = {BEFORE: smile, AFTER: probabilities}
    verdicts = {name: (scores[name] >= cut).astype(np.float64) for name, cut in ((BEFORE, _SMILE_CUT), (AFTER, 0.5))}
    figures = {
        "ECE": calibration_error(probabilities, rows.right),
        "Brier": brier_score(probabilities, rows.right),
    }
    return compared(rows, scores, verdicts, resamples=resamples, seed=seed), figures


def _values(results: Iterable[Mapping[str, Any]], names: Sequence[str]) -> NDArray[np.float64]:
    """float64[rows, features], NaN where a row lacks one."""
    rows = []
    for result in results:
        if not isinstance(found := result.get("features"), dict):
            raise InputError("the scores have no features: score with --metrics 'correctness?features_only=true'")
        if unknown := sorted(set(found) - set(names)):
            raise InputError(f"{unknown[0]} is no feature of this version of correctness: score the rows again")
        rows.append([found.get(name, math.nan) for name in names])
    return np.array(rows, np.float64)
