"""What became of the matched reference's values, shown beside SMILE's terms: words alone do not tell 1912 from 1913."""

from dataclasses import replace

from gradewire_server.domain.item import Item
from gradewire_server.domain.result import MetricResult, SmileParts
from gradewire_server.metrics.text.values.matching import match_values


def with_value_outcome(result: MetricResult, item: Item) -> MetricResult:
    """The result with `value_outcome` among its parts; its score is as it was."""
    if not isinstance(result.parts, SmileParts) or result.matched_reference is None:
        return result
    outcome = match_values(item.question, item.references[result.matched_reference], item.prediction).outcome
    return result if outcome is None else replace(result, parts=replace(result.parts, value_outcome=outcome.value))
