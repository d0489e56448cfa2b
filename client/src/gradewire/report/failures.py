"""Rows without a score, by metric and status, with a few examples."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gradewire.report.input import ReportInput
from gradewire.report.texts import ShownText, normal_form, shown, visible

_EXAMPLES = 3
_EXAMPLE_CHARACTERS = 160
_STATUS_CHARACTERS = 40
_FAILURES = 60
OTHER_FAILURES = "other statuses"


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed rows of one metric and status, with a few examples (id, message, prediction)."""

    metric: str
    status: str
    rows: int
    examples: Sequence[tuple[str, str, ShownText]]


def failures(report: ReportInput) -> list[Failures]:
    """Return rows without a score, by metric and status."""
    counts: Counter[tuple[str, str]] = Counter()
    examples: defaultdict[tuple[str, str], list[tuple[str, str, ShownText]]] = defaultdict(list)
    for row in report.rows:
        for metric, result in row.results.items():
            if result.get("score") is not None:
                continue
            key = metric, visible(str(result.get("status", "UNKNOWN"))[:_STATUS_CHARACTERS])
            if key not in counts and len(counts) == _FAILURES:
                key = metric, OTHER_FAILURES
            counts[key] += 1
            if len(examples[key]) < _EXAMPLES:
                text = shown(normal_form(row.prediction[: 4 * _EXAMPLE_CHARACTERS]), max_characters=_EXAMPLE_CHARACTERS)
                message = visible(str(result.get("message", ""))[: 2 * _EXAMPLE_CHARACTERS])
                examples[key].append((visible(row.id[:_EXAMPLE_CHARACTERS]), message, text))
    return [Failures(metric, status, counts[metric, status], examples[metric, status]) for metric, status in counts]
