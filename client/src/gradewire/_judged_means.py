"""Tell if the scored items of a judge's metric are only those that need no judge, so that their mean would mislead."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gradewire_proto.parts import AutoParts, JudgeParts, Parts

# Statuses (as strings, because `Status` is defined later) of items that were scored, or that no judge was asked about.
_NOT_OF_JUDGES: Final = frozenset({"OK", "EMPTY_PREDICTION", "INVALID_INPUT"})


def deciders_of(parts: Iterable[Parts | None]) -> Counter[str]:
    """Return the number of items by the step that decided them, of metrics that ask a judge."""
    return Counter(each.decided_by for each in parts if isinstance(each, JudgeParts | AutoParts))


def lacks_judge(deciders: Mapping[str, int], statuses: Mapping[Any, int]) -> bool:
    """Return True if a metric's judge graded no item, although some items needed it.

    Args:
        deciders: Number of items by `decided_by` of `JudgeParts` and `AutoParts`.
        statuses: Number of items by status.
    """
    if deciders.get("judge") or deciders.get("guard"):
        return False
    failed = any(count and status not in _NOT_OF_JUDGES for status, count in statuses.items())
    return bool(deciders.get("nobody") or (deciders.get("rule") and failed))
