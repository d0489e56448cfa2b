"""Propose for wrong verdicts KNVQA's class of evaluator errors and LAVE's failure mode, by rules.

The papers name the classes, and their authors assigned them by hand. These rules see only words and scores, so they
assign a class where words and scores can tell, and "" elsewhere. They read any language that separates words. Classes
that annotators gave are counted too, and compared with the proposals.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from gradewire_cli.results.tables import Cell, Table, count, estimated, number
from gradewire_cli.rows.formats import printable
from gradewire_stats.annotators import annotator_agreement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Family = Literal["lexical", "vector"]
FAMILIES: Final[dict[str, Family]] = {
    **dict.fromkeys(("exact_match", "easy_match", "lexical_match", "vqa_accuracy", "token_f1"), "lexical"),
    **dict.fromkeys(("smile", "sbert", "sfve", "bertscore"), "vector"),
}
"""The paper's family of evaluators by metric. Rules cannot classify errors of other metrics, such as judges."""
_JUDGES: Final = frozenset({"lave", "judge_grade", "judge_similarity", "judge_verdict"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorClass:
    """A class of wrong verdicts.

    Attributes:
        kind: "class" for KNVQA's classes of an evaluator's error, "mode" for LAVE's modes of missing a right answer.
        evaluators: The families of evaluators that make the error. Empty for a mode.
        calls: The verdicts that may have the class: "wrong" for a right answer, "right" for a wrong one.
        text: A definition.
        phrase: What a judge says after "The answer", or "" if rules see the class as well as anybody.
    """

    kind: Literal["class", "mode"]
    name: str
    text: str
    phrase: str = ""
    evaluators: Sequence[Literal["lexical", "vector", "judge"]] = ()
    calls: Sequence[Literal["wrong", "right"]] = ("wrong",)


CLASSES: Final = tuple(
    ErrorClass(**each)
    for each in tomllib.loads((resources.files(__package__) / "error_classes.toml").read_text("utf-8"))["class"]
)
"""KNVQA's twelve classes of an evaluator's errors (two of all evaluators, three of lexical ones, three of vectors, four
of judges), and LAVE's nine modes in which a metric misses a right answer."""
ERROR_CLASSES: Final = tuple(each.name for each in CLASSES if each.kind == "class")
FAILURE_MODES: Final = tuple(each.name for each in CLASSES if each.kind == "mode")

_OPEN_MODES: Final = tuple(each for each in CLASSES if each.kind == "mode" and each.phrase)

UNTOLD: Final = "no rule can tell"
NOT_GIVEN: Final = "no class given"
_WORD = re.compile(r"\w+")
_SMILES_THRESHOLD: Final = 2 / 3
_NEAR = 0.05
_MAX_LISTED = 10_000
_CLASS_CHARACTERS = 60
# Maximum number of classes in a table, because a column of free text may have as many as rows.
_SHOWN_CLASSES = 40
_OTHERS: Final = "other classes"
_EXTENDED_TIMES, _EXTENDED_WORDS = 4, 12
_SHORT_WORDS = 2
_STEM_CHARACTERS, _ENDING_CHARACTERS = 3, 4
_LEAST_DIFFERENT = 3
_NO_ANSWERS = frozenset({"unknown", "i don t know", "not sure", "unsure", "unanswerable"})


@dataclass(frozen=True, slots=True)
class WrongVerdict:
    """A verdict that differs from the label, with the proposed classes; "" if no rule can tell.

    Attributes:
        given: The class that an annotator gave for the row, or "".
        judged_class, judged_mode: The class and the failure mode that a judge named, or "".
    """

    id: str
    metric: str
    called_right: bool
    error_class: str
    failure_mode: str
    given: str = ""
    judged_class: str = ""
    judged_mode: str = ""

    @property
    def text(self) -> str:
        """The given class and the proposed ones, in words for a reader; "" without any."""
        named = {
            "given": self.given,
            "proposed": _joined(self.error_class, self.failure_mode),
            "by the judge": _joined(self.judged_class, self.judged_mode),
        }
        return "; ".join(f"{name} ({source})" for source, name in named.items() if name)


def _joined(*names: str) -> str:
    return " and ".join(dict.fromkeys(filter(None, names)))


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A wrong verdict without a rule's class or failure mode, and the classes that come into question.

    Attributes:
        position: The verdict's position in `WrongVerdicts.listed`.
    """

    position: int
    called_right: bool
    kind: Literal["class", "mode"]
    classes: tuple[ErrorClass, ...]


@dataclass(slots=True)
class WrongVerdicts:
    """The wrong verdicts over the rows so far.

    Attributes:
        listed: The first 10,000 wrong verdicts. All others are only counted.
    """

    listed: list[WrongVerdict] = field(default_factory=list)
    _items: list[Mapping[str, Any]] = field(default_factory=list)
    _classes: Counter[tuple[str, str]] = field(default_factory=Counter)
    _modes: Counter[tuple[str, str]] = field(default_factory=Counter)
    _given: Counter[tuple[str, str]] = field(default_factory=Counter)
    _both: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=dict)

    def add(
        self, item: Mapping[str, Any], metric: str, result: Mapping[str, Any], *, called_right: bool, given: str = ""
    ) -> int | None:
        """Add an item's wrong verdict.

        Args:
            item: The item, with its references and its prediction.
            metric: The metric's label.
            result: The metric's result in an output row.
            called_right: True if the answer is wrong, but was called right.
            given: The class that an annotator gave for the row, or "".

        Returns:
            The verdict's position in `listed`, or None if it is only counted.
        """
        references, prediction = [str(each) for each in item.get("references") or ()], str(item["prediction"])
        line = str(result.get("line") or metric)
        found = WrongVerdict(
            id=str(item.get("id", "")),
            metric=metric,
            called_right=called_right,
            error_class=error_class(line, result["score"], references, prediction, called_right=called_right),
            failure_mode="" if called_right else failure_mode(references, prediction),
            given=class_named(given),
        )
        if len(self.listed) < _MAX_LISTED:
            self.listed.append(found)
            self._items.append(item)
        self._classes[found.error_class, metric] += 1
        if not called_right:
            self._modes[found.failure_mode, metric] += 1
        self._given[found.given, metric] += 1
        for name, known, proposed in (
            ("class", ERROR_CLASSES, found.error_class),
            ("failure mode", FAILURE_MODES, found.failure_mode),
        ):
            if proposed and found.given in known:
                self._both.setdefault((metric, name), []).append((known.index(found.given), known.index(proposed)))
        return len(self.listed) - 1 if self.listed[-1] is found else None

    def open_questions(self) -> Iterator[OpenQuestion]:
        """Yield a question for each listed verdict without a rule's class, and for each miss without a failure mode."""
        for position, wrong in enumerate(self.listed):
            if not wrong.error_class:
                yield OpenQuestion(position, wrong.called_right, "class", _open_classes(wrong))
            if not wrong.called_right and not wrong.failure_mode:
                yield OpenQuestion(position, False, "mode", _OPEN_MODES)  # noqa: FBT003 - a miss

    def item_of(self, question: OpenQuestion) -> Mapping[str, Any]:
        """Return the item of a question's verdict."""
        return self._items[question.position]

    def name(self, question: OpenQuestion, name: str) -> None:
        """Add the class that a judge named, or "" if it named none."""
        wrong = self.listed[question.position]
        changed = replace(wrong, judged_class=name) if question.kind == "class" else replace(wrong, judged_mode=name)
        self.listed[question.position] = changed

    def tables(self) -> list[Table]:
        """Return tables with the number of wrong verdicts by metric and class: proposed, failure mode and given.

        If annotators gave classes, a last table compares them with the proposals.
        """
        titled = {
            "Wrong verdicts by class": (self._classes, UNTOLD),
            "Misses by failure mode": (self._modes, UNTOLD),
        }
        if any(given for given, _ in self._given):
            titled["Wrong verdicts by given class"] = (self._given, NOT_GIVEN)
        judged: dict[str, Counter[tuple[str, str]]] = {"class": Counter(), "failure mode": Counter()}
        both = {key: list(pairs) for key, pairs in self._both.items()}
        for wrong in self.listed:
            for (kind, counts), named in zip(judged.items(), (wrong.judged_class, wrong.judged_mode), strict=True):
                known = ERROR_CLASSES if kind == "class" else FAILURE_MODES
                if named:
                    counts[named, wrong.metric] += 1
                if named and wrong.given in known:
                    key = wrong.metric, f"{kind} by the judge"
                    both.setdefault(key, []).append((known.index(wrong.given), known.index(named)))
        titled |= {f"Judge's {kind} where no rule can tell": (counts, "") for kind, counts in judged.items()}
        found = [_table(title, *each) for title, each in titled.items() if each[0]]
        return [*found, _agreement(both)] if both else found


def _open_classes(wrong: WrongVerdict) -> tuple[ErrorClass, ...]:
    """Return the classes that come into question: those of the metric's family, or all for a metric without one."""
    call = "right" if wrong.called_right else "wrong"
    fitting = [each for each in CLASSES if each.kind == "class" and call in each.calls and each.phrase]
    name = wrong.metric.partition("?")[0].partition("/")[0].partition(":")[0]
    family = FAMILIES.get(name) or ("judge" if name in _JUDGES else None)
    own = [each for each in fitting if family in each.evaluators]
    return tuple(own if len(own) > 1 else fitting)


def class_named(text: str) -> str:
    """Return the class or failure mode that a text names, in any case and with or without "error"; else the text."""
    words = " ".join(_WORD.findall(text.casefold().replace("_", " ")))
    plain = words.removesuffix(" error")
    known = {" ".join(_WORD.findall(name)): name for name in (*ERROR_CLASSES, *FAILURE_MODES)}
    return known.get(words) or known.get(plain) or printable(" ".join(text.split()))[:_CLASS_CHARACTERS]


def _table(title: str, counts: Counter[tuple[str, str]], without: str) -> Table:
    metrics = list(dict.fromkeys(metric for _, metric in counts))
    totals: Counter[str] = Counter()
    for (kind, _), wrong in counts.items():
        totals[kind] += wrong
    shown = {kind for kind, _ in totals.most_common(_SHOWN_CLASSES)}
    if len(shown) < len(totals):
        counted: Counter[tuple[str, str]] = Counter()
        for (kind, metric), wrong in counts.items():
            counted[kind if kind in shown else _OTHERS, metric] += wrong
        counts = counted
    kinds = sorted({kind for kind, _ in counts}, key=lambda kind: (not kind, kind == _OTHERS, kind))
    rows: list[list[Cell]] = [[kind or without, *(count(counts[kind, each]) for each in metrics)] for kind in kinds]
    return Table(title, ["class", *metrics], rows)


def _agreement(both: Mapping[tuple[str, str], Sequence[tuple[int, int]]]) -> Table:
    """Return a table with the agreement of given and proposed classes, on verdicts that have both."""
    rows: list[list[Cell]] = []
    for (metric, name), pairs in both.items():
        ratings = np.array(pairs, dtype=np.float64)
        (pair,) = annotator_agreement(ratings).pairs if len(pairs) > 1 else (None,)
        same = float(np.mean(ratings[:, 0] == ratings[:, 1]))
        rows.append([metric, name, count(len(pairs)), number(same), "-" if pair is None else estimated(pair.kappa)])
    heads = ["metric", "proposal", "wrong verdicts with both", "same class", "Cohen's kappa"]
    return Table("Given and proposed classes", heads, rows, heads=2)


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
