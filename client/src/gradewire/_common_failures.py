"""Warn about steps in which all rows failed for the same reason, usually a wrong field name or setting."""

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeAlias

from gradewire._columns import ALIASES
from gradewire.results import MetricScore, Status

Outcome: TypeAlias = tuple[Status, str]
"""An item's status and message."""

OF_FIELDS: Final = frozenset({Status.INVALID_INPUT, Status.EMPTY_PREDICTION})
"""Statuses that a wrong field name can cause."""
_NUMBER: Final = re.compile(r"\d+")
_READ: Final = ("prediction", "references", "question")
_MOST_REASONS: Final = 8
"""Maximum number of reasons to distinguish, so that messages that quote items cannot cause a warning for each step."""


def same_reason(message: str) -> str:
    """Return a key that is equal for messages that differ only in numbers, such as an item's position."""
    return _NUMBER.sub("0", message)


def common_failure(outcomes: Sequence[Outcome]) -> Outcome | None:
    """Return the first outcome if all items failed for the same reason, otherwise None.

    OK with a message counts as a failure: a rule has replaced the score.
    """
    if not outcomes or outcomes[0] == (Status.OK, ""):
        return None
    status, message = outcomes[0]
    key = same_reason(message)
    alike = all(other is status and same_reason(said) == key for other, said in outcomes)
    return (status, message) if alike else None


def outcomes_of(results: Sequence[Mapping[str, MetricScore]]) -> dict[str, list[Outcome]]:
    """Return the items' outcomes by metric label."""
    labels = results[0] if results else {}
    return {label: [(scores[label].status, scores[label].message) for scores in results] for label in labels}


def item_fields(rows: Sequence[Any]) -> str:
    """Return a sentence on the fields of the first row, and on the names under which gradewire looks for values."""
    read = ", ".join(f"{name} (or {', '.join(ALIASES[name][1:4])}, …)" if ALIASES[name][1:] else name for name in _READ)
    first = rows[0] if rows else None
    seen = ", ".join(map(str, first)) if isinstance(first, Mapping) else type(first).__name__
    return f"The first item has the fields {seen or 'none'}; gradewire reads {read}"


class FailureNotices:
    """Warnings for one scorer: at the first step that fails as a whole for a reason, then at the 10th, 100th and so on.

    Several threads may use the same notices.

    Args:
        log: The logger of the warnings.
        least: Minimum number of items to judge. Items of smaller steps wait for those of the next steps.
        of_fields: Statuses after which a warning names fields.
    """

    def __init__(self, log: logging.Logger, *, least: int = 1, of_fields: AbstractSet[Status] = OF_FIELDS) -> None:
        self._log = log
        self._least = least
        self._of_fields = of_fields
        self._held: dict[str, list[Outcome]] = {}
        self._steps: dict[tuple[Status, str], int] = {}
        self._lock = threading.Lock()

    def take(self, step: str, outcomes: Mapping[str, Sequence[Outcome]], fields: Callable[[], str]) -> None:
        """Take a step's outcomes by metric label, and warn if all of them are the same failure.

        Args:
            step: The items' name in the warning, such as "answers of step 3".
            outcomes: The items' outcomes by metric label.
            fields: A function that returns a sentence on the fields that were found and those that are read.
        """
        with self._lock:
            failures = self._failures(outcomes)
            numbers = {failure: self._count(failure) for failure in failures}
        for failure, number in numbers.items():
            if _is_power_of_ten(number):
                labels, items = failures[failure]
                status, message = failure
                hint = f". {fields()}" if status in self._of_fields else ""
                again = f" (for the {number}th time; the next warning comes at {10 * number})" if number > 1 else ""
                text = message if status is Status.OK else f"{status}: {message}" if message else str(status)
                self._log.warning("all %d %s failed for %s%s: %s%s", items, step, ", ".join(labels), again, text, hint)

    def _failures(self, outcomes: Mapping[str, Sequence[Outcome]]) -> dict[Outcome, tuple[list[str], int]]:
        """Return the labels and the number of items of each common failure."""
        found: dict[Outcome, tuple[list[str], int]] = {}
        for label, new in outcomes.items():
            held = self._held.setdefault(label, [])
            held.extend(new)
            if len(held) < self._least:
                continue
            del self._held[label]
            if (failure := common_failure(held)) is not None:
                found.setdefault(failure, ([], len(held)))[0].append(label)
        return found

    def _count(self, failure: Outcome) -> int:
        key = failure[0], same_reason(failure[1])
        if key not in self._steps and len(self._steps) >= _MOST_REASONS:
            return 0
        self._steps[key] = self._steps.get(key, 0) + 1
        return self._steps[key]

    def __getstate__(self) -> dict[str, Any]:
        return {"log": self._log, "least": self._least, "of_fields": self._of_fields}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _is_power_of_ten(number: int) -> bool:
    return number > 0 and str(number).strip("0") == "1"
