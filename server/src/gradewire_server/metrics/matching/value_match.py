"""Value match: share of a reference's dates, quantities and other values that the prediction has, as values.

No publication: the rules are this project's, and docs/reference/metrics.md gives them.
"""

from typing import Final

from typing_extensions import override

from gradewire_proto.parts import ValueMatchParts
from gradewire_server.domain.items import Failure, Item, MetricResult, Status
from gradewire_server.domain.metric import MetricInfo, Parameters
from gradewire_server.metrics.common import FailureError, TextMetric, cut_warning
from gradewire_server.metrics.values.matching import ValueMatch, ValueMatcher
from gradewire_server.metrics.values.tokens import MAX_CHARACTERS

_MAX_REFERENCES: Final = 64
"""References that are compared, the first ones: each costs time for every value of the prediction."""
_MAX_WANTED: Final = 128
"""Values of all references together; behind as many no further reference is read."""
_NO_VALUES: Final = Failure(
    Status.INVALID_INPUT,
    "references: none names a value (a date, a quantity, a place in an order, a formula), so there is nothing to "
    "compare; metrics that compare words take it",
)
_SOME_WITHOUT: Final = Failure(
    Status.INVALID_INPUT,
    "references: one names no value, so the prediction, which has not all values of any other, may be right by that "
    "one; metrics that compare words take it",
)


class ValueMatchMetric(TextMetric[Parameters]):
    """Share of the best reference's values that the prediction has, 0 where it contradicts one; the first best counts.

    INVALID_INPUT where no reference has values, and where one has none and the prediction has not all of another's.
    """

    info = MetricInfo(
        name="value_match",
        version=1,
        description="Share of a reference's dates, quantities and other values that the prediction has, as values; 0 "
        "where it contradicts one.",
        citation="gradewire's own; see docs/reference/metrics.md",
    )
    parameters_type = Parameters

    @override
    def grade(self, item: Item, parameters: Parameters) -> MetricResult:
        del parameters
        matches, references_cut = _matches(item)
        named = [index for index, match in enumerate(matches) if match.wanted]
        if not named:
            raise FailureError(_NO_VALUES)
        best = max(named, key=lambda index: _rank(matches[index]))  # the first of equals
        match = matches[best]
        correct = match.found == match.wanted
        if not correct and len(named) < len(matches):
            raise FailureError(_SOME_WITHOUT)
        return MetricResult(
            score=_score(match),
            correct=correct,
            warnings=cut_warning(references_cut, len(item.prediction) > MAX_CHARACTERS),
            matched_reference=best,
            parts=ValueMatchParts(
                wanted=match.wanted,
                found=match.found,
                contradicted=match.contradicted,
                missing=match.missing,
                coarser=match.coarser,
                extra=match.extra,
                kinds={kind.value: outcome.value for kind, outcome in match.kinds.items()},
            ),
        )


def _matches(item: Item) -> tuple[list[ValueMatch], bool]:
    """Return what the prediction has of each reference, and whether references were left out."""
    matcher = ValueMatcher(item.question, item.prediction)
    matches: list[ValueMatch] = []
    wanted = 0
    for reference in item.references[:_MAX_REFERENCES]:
        if wanted >= _MAX_WANTED:
            break
        matches.append(matcher.match(reference))
        wanted += matches[-1].wanted
    return matches, len(matches) < len(item.references)


def _score(match: ValueMatch) -> float:
    return 0.0 if match.contradicted else match.found / match.wanted


def _rank(match: ValueMatch) -> tuple[float, float, int]:
    """Return the rank: by score, then by the share that is found, then by how little is contradicted."""
    return _score(match), match.found / match.wanted, -match.contradicted
