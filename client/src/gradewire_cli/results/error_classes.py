"""Propose for wrong verdicts KNVQA's class of evaluator errors and LAVE's failure mode, by rules.

The papers name the classes, and their authors assigned them by hand. These rules see only words and scores, so they
assign a class where words and scores can tell, and "" elsewhere. They read any language that separates words.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from gradewire_cli.results.tables import Cell, Table, count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Family = Literal["lexical", "vector"]
FAMILIES: Final[dict[str, Family]] = {
    **dict.fromkeys(("exact_match", "easy_match", "lexical_match", "vqa_accuracy", "token_f1"), "lexical"),
    **dict.fromkeys(("smile", "sbert", "sfve", "bertscore"), "vector"),
}
"""The paper's family of evaluators by metric. Rules cannot classify errors of other metrics, such as judges."""

UNTOLD: Final = "no rule can tell"
_WORD = re.compile(r"\w+")
_SMILES_THRESHOLD: Final = 2 / 3
_NEAR = 0.05
_MAX_LISTED = 10_000
_EXTENDED_TIMES, _EXTENDED_WORDS = 4, 12
_SHORT_WORDS = 2
_STEM_CHARACTERS, _ENDING_CHARACTERS = 3, 4
_LEAST_DIFFERENT = 3
_NO_ANSWERS = frozenset({"unknown", "i don t know", "not sure", "unsure", "unanswerable"})


@dataclass(frozen=True, slots=True)
class WrongVerdict:
    """A verdict that differs from the label, with the proposed classes; "" if no rule can tell."""

    id: str
    metric: str
    called_right: bool
    error_class: str
    failure_mode: str


@dataclass(slots=True)
class WrongVerdicts:
    """The wrong verdicts over the rows so far.

    Attributes:
        listed: The first 10,000 wrong verdicts. All others are only counted.
    """

    listed: list[WrongVerdict] = field(default_factory=list)
    _classes: Counter[tuple[str, str]] = field(default_factory=Counter)
    _modes: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, item: Mapping[str, Any], metric: str, result: Mapping[str, Any], *, called_right: bool) -> None:
        """Add an item's wrong verdict. `result` is the metric's result in an output row."""
        references, prediction = [str(each) for each in item.get("references") or ()], str(item["prediction"])
        line = str(result.get("line") or metric)
        found = WrongVerdict(
            id=str(item.get("id", "")),
            metric=metric,
            called_right=called_right,
            error_class=error_class(line, result["score"], references, prediction, called_right=called_right),
            failure_mode="" if called_right else failure_mode(references, prediction),
        )
        if len(self.listed) < _MAX_LISTED:
            self.listed.append(found)
        self._classes[found.error_class, metric] += 1
        if not called_right:
            self._modes[found.failure_mode, metric] += 1

    def tables(self) -> list[Table]:
        """Return one table with the number of wrong verdicts by class and metric, and one by failure mode."""
        titled = {
            "Wrong verdicts by class": self._classes,
            "Misses by failure mode": self._modes,
        }
        return [_table(title, counts) for title, counts in titled.items() if counts]


def _table(title: str, counts: Counter[tuple[str, str]]) -> Table:
    metrics = list(dict.fromkeys(metric for _, metric in counts))
    kinds = sorted({kind for kind, _ in counts}, key=lambda kind: (not kind, kind))
    rows: list[list[Cell]] = [[kind or UNTOLD, *(count(counts[kind, each]) for each in metrics)] for kind in kinds]
    return Table(title, ["class", *metrics], rows)


def error_class(line: str, score: float, references: Sequence[str], prediction: str, *, called_right: bool) -> str:
    """Return KNVQA's class of an evaluator's error, or "".

    Args:
        line: The metric's identifier. Its `threshold`, or 2/3 for `smile`, is what a score is near to.
        score: The metric's score of the prediction.
        references: The right answers. The one that shares most words with the prediction counts.
        prediction: The answer with the wrong verdict.
        called_right: True if the answer is wrong, but was called right.
    """
    name, _, parameters = line.partition("?")
    name = name.partition("/")[0].partition(":")[0]
    family = FAMILIES.get(name)
    if family is None or not references:
        return ""
    answer = _words(prediction)
    right = max(map(_words, references), key=lambda words: (len(words & answer), -words.total()))
    if family == "lexical":
        return "overall misleading" if called_right else _missed_words(right, answer)
    cut = _threshold(name, parameters)
    if cut is not None and abs(score - cut) <= _NEAR:
        return "threshold sensitivity"
    if called_right:
        return "contextual misunderstanding"
    if answer.total() >= max(_EXTENDED_WORDS, _EXTENDED_TIMES * right.total()):
        return "extended answer"
    return "" if right & answer else _other_words(right, answer)


def _missed_words(right: Counter[str], answer: Counter[str]) -> str:
    if right and right <= answer:
        return "structure variation"
    return "partial match" if right & answer else _other_words(right, answer)


def _other_words(right: Counter[str], answer: Counter[str]) -> str:
    return "synonym" if max(right.total(), answer.total()) <= _SHORT_WORDS else "paraphrasing"


def _threshold(name: str, parameters: str) -> float | None:
    found = re.search(r"(?:^|&)threshold=([^&]+)", parameters)
    if found is None:
        return _SMILES_THRESHOLD if name == "smile" else None
    return float(found[1])


def failure_mode(references: Sequence[str], prediction: str) -> str:
    """Return LAVE's mode in which a metric misses a right answer, or ""."""
    answer = _words(prediction)
    if " ".join(_WORD.findall(prediction.casefold())) in _NO_ANSWERS:
        return "unknown issue"
    rights = [_words(each) for each in references]
    if any(_same_stems(right, answer) for right in rights):
        return "same stem"
    if any(right and answer and (right <= answer or answer <= right) for right in rights):
        return "over- or under-specifying and verbosity"
    different = {frozenset(right) for right in rights}
    apart = all(not one & other for one, other in itertools.combinations(different, 2))
    return "multiple answers" if len(different) >= _LEAST_DIFFERENT and apart else ""


def _same_stems(right: Counter[str], answer: Counter[str]) -> bool:
    pairs = zip(sorted(right.elements()), sorted(answer.elements()), strict=False)
    return bool(right) and right.total() == answer.total() and all(_same_stem(*pair) for pair in pairs)


def _same_stem(one: str, other: str) -> bool:
    shared = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    shared = min(len(one), len(other)) if shared is None else shared
    endings = max(len(one), len(other)) - shared
    return one == other or (shared >= _STEM_CHARACTERS and shared > endings and endings <= _ENDING_CHARACTERS)


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.casefold()))
