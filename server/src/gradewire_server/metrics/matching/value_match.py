"""Value match: the share of a reference's dates, quantities and other values that the prediction contains.

The rules are this project's own; docs/reference/metrics.md describes them.
"""

from typing import Final

from typing_extensions import override

from gradewire_proto.parts import ValueMatchParts
from gradewire_server.domain.items import Failure, Item, MetricResult, Status
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.common import AnswerParameters, FailureError, TextMetric, cut_warning
from gradewire_server.metrics.values.matching import ValueMatch, ValueMatcher
from gradewire_server.metrics.values.tokens import MAX_CHARACTERS

_MAX_REFERENCES: Final = 64
_MAX_WANTED: Final = 128
"""Once the compared references contain this many values, further references are skipped."""
_NO_VALUES: Final = Failure(
    Status.INVALID_INPUT,
    "references: contain no value to compare (a date, a quantity, an ordinal, a formula). Use a metric that compares "
    "words",
)
_SOME_WITHOUT: Final = Failure(
    Status.INVALID_INPUT,
    "references: a reference contains no value and cannot be compared, and the prediction matches no other reference. "
    "Use a metric that compares words",
)


class ValueMatchMetric(TextMetric[AnswerParameters]):
    """The share of the best reference's values in the prediction, or 0 if the prediction contradicts a value.

    Among equally good references, the first counts. The status is INVALID_INPUT if no reference contains values, or if
    a reference contains no values and the prediction lacks a value of the best reference.
    """

    info = MetricInfo(
        name="value_match",
        version=1,
        description="Share of a reference's dates, quantities and other values that the prediction contains, in any "
        "notation; 0 if the prediction contradicts one of them.",
        citation="gradewire's own; see docs/reference/metrics.md",
    )
    parameters_type = AnswerParameters

    @override
    def grade(self, item: Item, parameters: AnswerParameters) -> MetricResult:
        del parameters
        matches, references_cut = _matches(item)
        named = [index for index, match in enumerate(matches) if match.wanted]
        if not named:
            raise FailureError(_NO_VALUES)
        best = max(named, key=lambda index: _sort_key(matches[index]))  # the first of equally good references
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
    """Match the prediction with each reference. Also return True if references were skipped."""
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


def _sort_key(match: ValueMatch) -> tuple[float, float, int]:
    return _score(match), match.found / match.wanted, -match.contradicted
