"""Common parts of metrics: checks of items, ties, rounds of needs, shared parameters, and metrics of texts alone."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import wraps
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar
from unicodedata import category

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_server.domain.items import (
    Failure,
    Item,
    MetricResult,
    Pair,
    ReferenceEntry,
    ResultWarning,
    Status,
    quoted,
)
from gradewire_server.domain.metric import ModelMetadata, ParameterError, Parameters, calibration_for
from gradewire_server.domain.needs import Embed, Need, Preparation, Program, Rounds, Tier, Vectors, ask
from gradewire_server.metrics.text.folding import BLANK_PATTERN, FILLERS

T = TypeVar("T")
P = TypeVar("P", bound=Parameters)
A = ParamSpec("A")

TIE = 1e-6
"""Values closer than this are equal: rounding inside a matrix product must not decide between two equal texts."""


def first_of_the_highest(values: NDArray[np.floating[Any]] | list[float]) -> int:
    """Return the lowest index whose value is within TIE of the maximum; `values` is not empty."""
    if isinstance(values, list):
        least = max(values) - TIE
        return next(index for index, value in enumerate(values) if value >= least)
    return int((values >= values.max() - TIE).argmax())


MAX_QUESTION_CHARACTERS: Final = 32_768
"""Longest question that is put before answers: a thousand references would make a thousand copies of it."""
_UNSEEN: Final = FILLERS | {BLANK_PATTERN}
_EMPTY_LETTERS: Final = "".join(sorted(filter(str.isalnum, FILLERS)))
"""Hangul fillers: letters of which nothing is seen."""
_WORD_CHARACTER: Final = re.compile(rf"[^\W{_EMPTY_LETTERS}]")
_LETTER_OR_DIGIT: Final = re.compile(rf"[^\W_{_EMPTY_LETTERS}]")
_UNSEEN_KINDS: Final = frozenset({"Cc", "Cf"})


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing to a reader.

    It then holds only white space, control and format characters (Cc, Cf; zero-width ones), Hangul fillers, variation
    selectors and the like (Unicode's default ignorable ones), and the blank of Braille.
    """
    if _WORD_CHARACTER.search(text):
        return False  # nearly every text, after its first character
    return all(
        character.isspace() or character in _UNSEEN or category(character) in _UNSEEN_KINDS for character in set(text)
    )


def has_letter_or_digit(text: str) -> bool:
    """Return whether a text has a letter or digit that a reader sees."""
    return _LETTER_OR_DIGIT.search(text) is not None


def check_references(references: tuple[str, ...]) -> Failure | None:
    """Return INVALID_INPUT where there is no reference or a blank one."""
    if not references:
        return Failure(Status.INVALID_INPUT, "references: give at least one right answer")
    for index, reference in enumerate(references):
        if is_blank(reference):
            return Failure(Status.INVALID_INPUT, f"references[{index}]: is blank; leave it out or write the answer")
    return None


def check_item(item: Item) -> Failure | None:
    """Return INVALID_INPUT as `check_references`, else EMPTY_PREDICTION where the prediction is blank."""
    failure = check_references(item.references)
    if failure is None and is_blank(item.prediction):
        return Failure(
            Status.EMPTY_PREDICTION,
            "prediction: is blank; summaries count it as wrong, beside the mean of scored items",
        )
    return failure


def check_question(
    question: str, *, why: str = "this metric compares answers together with it", where: str = "before answers"
) -> Failure | None:
    """Return INVALID_INPUT where the question is blank or too long; `why` and `where` say what it is for."""
    if is_blank(question):
        return Failure(Status.INVALID_INPUT, f"question: is blank; {why}")
    if len(question) > MAX_QUESTION_CHARACTERS:
        message = f"question: has {len(question)} characters; {where} it may have {MAX_QUESTION_CHARACTERS}"
        return Failure(Status.INVALID_INPUT, message)
    return None


def cut_warning(*cut: bool) -> tuple[ResultWarning, ...]:
    """Return TRUNCATED where any part of an item was looked at only in part."""
    return (ResultWarning.TRUNCATED,) if any(cut) else ()


class FailureError(Exception):
    """A failure that ends a metric, by default with the failure's own result."""

    def __init__(self, failure: Failure, result: MetricResult | None = None) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.result = result or MetricResult.failed(failure)


def stop_at(failure: Failure | None) -> None:
    """Raise FailureError where a check found something."""
    if failure is not None:
        raise FailureError(failure)


def expect(asked: Rounds[T | Failure]) -> Rounds[T]:
    """Return what a need is answered with, or raise FailureError where that is a failure."""
    answer = yield from asked
    if isinstance(answer, Failure):
        raise FailureError(answer)
    return answer


def scoring(run: Callable[Concatenate[T, Item, A], Program]) -> Callable[Concatenate[T, Item, A], Program]:
    """Decorate a metric's `score`: what stops it becomes its result, and it only sees items that pass `check_item`.

    Pairs it sees unchecked: they may be compared without references.
    """

    @wraps(run)
    def program(metric: T, item: Item, /, *args: A.args, **kwargs: A.kwargs) -> Program:
        try:
            stop_at(None if isinstance(item, Pair) else check_item(item))
            return (yield from run(metric, item, *args, **kwargs))
        except FailureError as error:
            return error.result

    return program


def preparing(
    run: Callable[Concatenate[T, ReferenceEntry, A], Preparation],
) -> Callable[Concatenate[T, ReferenceEntry, A], Preparation]:
    """Decorate a metric's `prepare`: it returns the failure that stops it, and only sees checked references."""

    @wraps(run)
    def preparation(metric: T, entry: ReferenceEntry, /, *args: A.args, **kwargs: A.kwargs) -> Preparation:
        try:
            stop_at(check_references(entry.references))
            return (yield from run(metric, entry, *args, **kwargs))
        except FailureError as error:
            return error.failure

    return preparation


def ask_together(*needs: Need) -> Rounds[Any]:
    """Yield all needs as one round; return their answers in the same order.

    Raises:
        FailureError: One of them is a failure.
    """
    answers = yield needs
    stop_at(next((answer for answer in answers if isinstance(answer, Failure)), None))
    return answers


def sentence_needs(model: str, prediction: str, references: tuple[str, ...]) -> tuple[Embed, Embed]:
    """Return needs for the vector of a prediction and for those of the references that it is compared with."""
    return Embed(model, (prediction,), Tier.PREDICTION), Embed(model, references, Tier.REFERENCE)


def embed_references(model: str, texts: tuple[str, ...]) -> Preparation:
    """Ask for the vectors of references that are prepared."""
    yield from expect(ask(Embed(model, texts, Tier.REFERENCE)))
    return None


def is_cut(*answers: Vectors) -> bool:
    """Return whether the encoder read a text only in part."""
    return any(bool(answer.truncated.any()) for answer in answers)


def take_choices(parameters: Parameters) -> None:
    """Make members of all fields whose default is the member of an enum; for `__post_init__`.

    Raises:
        ParameterError: A choice that does not exist; names the field and the choices.
    """
    for field in fields(parameters):
        if isinstance(field.default, StrEnum):
            kind = type(field.default)
            value = getattr(parameters, field.name)
            try:
                object.__setattr__(parameters, field.name, kind(value))
            except ValueError:
                raise ParameterError(
                    field.name, f"must be one of {', '.join(kind)}, not {quoted(str(value))}"
                ) from None


def check_readable(metadata: ModelMetadata) -> None:
    """Raise ParameterError where a fit for the metric cannot be read: without it scores would differ."""
    for _, told in metadata.unreadable:
        raise ParameterError("model", told)


@dataclass(frozen=True, slots=True)
class EncoderParameters(Parameters):
    """Parameters of a metric that compares vectors and has no others; base of those that have.

    `calibration` says whose fit filled the threshold in.

    Raises:
        ParameterError: A choice that does not exist, or a threshold that is not a finite number.
    """

    model: str = ""
    threshold: float | None = None
    calibration: str = ""

    def __post_init__(self) -> None:
        take_choices(self)
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ParameterError("threshold", f"must be a finite number, not {self.threshold}")

    def resolved(self, metadata: ModelMetadata) -> Self:
        """Return the parameters with threshold and calibration filled in, where one was fitted and none is set.

        Raises:
            ParameterError: None is set, and what was fitted for the model cannot be read.
        """
        if self.threshold is not None:
            return self
        check_readable(metadata)
        found = calibration_for(metadata.calibrations, self)
        return self if found is None else replace(self, threshold=found.threshold, calibration=found.described)


class NothingToPrepare:
    """Base of metrics for which nothing has to be prepared."""

    def prepare(self, entry: ReferenceEntry, parameters: object) -> Preparation:
        """Ask for nothing; only checks the references."""
        del parameters
        yield from ()
        return check_references(entry.references)


class TextMetric(NothingToPrepare, ABC, Generic[P]):
    """Base of metrics that ask neither an encoder nor a judge."""

    @scoring
    def score(self, item: Item, parameters: P, metadata: ModelMetadata) -> Program:
        """Ask for nothing."""
        del metadata
        yield from ()
        return self.grade(item, parameters)

    @abstractmethod
    def grade(self, item: Item, parameters: P) -> MetricResult:
        """Grade an item that passes `check_item`; it may raise FailureError."""


class MatchMetric(TextMetric[Parameters]):
    """Base of metrics without parameters: 1 if a reference matches, else 0; the first that does is named."""

    parameters_type = Parameters

    @override
    def grade(self, item: Item, parameters: Parameters) -> MetricResult:
        del parameters
        found = next((index for index, matches in enumerate(self.matches(item)) if matches), None)
        return MetricResult(float(found is not None), matched_reference=found, correct=found is not None)

    @abstractmethod
    def matches(self, item: Item) -> Iterable[bool]:
        """Return whether each reference matches the prediction, in their order."""
