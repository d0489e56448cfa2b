"""The reference whose sentence vector is closest to the prediction's."""

from gradewire_server.domain.needs import Vectors
from gradewire_server.domain.result import MetricResult
from gradewire_server.metrics.checks import cut_warning
from gradewire_server.metrics.rounds import is_cut
from gradewire_server.metrics.ties import first_of_the_highest


def closest_reference(prediction: Vectors, references: Vectors, threshold: float | None) -> MetricResult:
    """The largest cosine; of equal ones the lowest reference index.

    Args:
        prediction: One vector.
        references: One a reference.
        threshold: Cosine from which the answer counts as right; None for no verdict.
    """
    cosines = (references.values @ prediction.values[0]).clip(-1.0, 1.0)
    best = first_of_the_highest(cosines)
    score = float(cosines[best])
    return MetricResult(
        score=score,
        warnings=cut_warning(is_cut(prediction, references)),
        matched_reference=best,
        correct=None if threshold is None else score >= threshold,
    )
