"""Code that metrics share."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import lru_cache, wraps
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar
from unicodedata import category

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from gradewire_proto import final_answer
from gradewire_proto.choices import GradedAnswer
from gradewire_proto.wire_rules import TooManyMarksError, nfc
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
from gradewire_server.domain.metric import MetricInfo, ModelMetadata, ParameterError, Parameters, calibration_for
from gradewire_server.domain.needs import Embed, Need, Preparation, Program, Rounds, Tier, Vectors, ask
from gradewire_server.metrics.text.abstentions import abstains
from gradewire_server.metrics.text.folding import BLANK_PATTERN, FILLERS

T = TypeVar("T")
M = TypeVar("M", bound="_HasInfo")
P = TypeVar("P", bound="AnswerParameters")
A = ParamSpec("A")


class _HasInfo(Protocol):
    @property
    def info(self) -> MetricInfo: ...


TIE = 1e-6
"""The difference below which two values count as equal, because matrix products round."""


_TIE_OF_VECTORS: Final = np.float32(TIE)
_FEW: Final = 64
"""Number of values up to which plain Python is faster than numpy."""


def first_of_the_highest(values: NDArray[np.floating[Any]] | list[float]) -> int:
    """Return the lowest index of a value within TIE of the maximum; `values` is not empty."""
    if isinstance(values, list):
        return _first_from(max(values) - TIE, values)
    if values.dtype == np.float32 and len(values) <= _FEW:
        listed: list[float] = values.tolist()
        return _first_from(float(np.float32(max(listed)) - _TIE_OF_VECTORS), listed)
    return int((values >= values.max() - TIE).argmax())


def _first_from(least: float, values: list[float]) -> int:
    return next((index for index, value in enumerate(values) if value >= least), 0)


MAX_QUESTION_CHARACTERS: Final = 32_768
"""Maximum number of characters in a question that is put before each answer."""
_UNSEEN: Final = FILLERS | {BLANK_PATTERN}
_INVISIBLE_LETTERS: Final = "".join(sorted(filter(str.isalnum, FILLERS)))
_WORD_CHARACTER: Final = re.compile(rf"[^\W{_INVISIBLE_LETTERS}]")
_LETTER_OR_DIGIT: Final = re.compile(rf"[^\W_{_INVISIBLE_LETTERS}]")
_UNSEEN_KINDS: Final = frozenset({"Cc", "Cf"})


def is_blank(text: str) -> bool:
    """Return True if a text has no visible character.

    White space, control and format characters, Hangul fillers, variation selectors, other default-ignorable characters
    and the Braille blank are invisible.
    """
    if _WORD_CHARACTER.search(text):
        return False  # nearly every call returns here, after the first character
    return all(
        character.isspace() or character in _UNSEEN or category(character) in _UNSEEN_KINDS for character in set(text)
    )


def has_letter_or_digit(text: str) -> bool:
    """Return True if a text contains a visible letter or digit."""
    return _LETTER_OR_DIGIT.search(text) is not None


def check_references(references: tuple[str, ...]) -> Failure | None:
    """Return INVALID_INPUT if references are missing or a reference is blank."""
    if not references:
        message = "references: give at least one right answer, or set answerable=false if the question has no answer"
        return Failure(Status.INVALID_INPUT, message)
    for index, reference in enumerate(references):
        if is_blank(reference):
            return Failure(Status.INVALID_INPUT, f"references[{index}]: is blank. Remove or replace this reference")
    return None


def check_item(item: Item) -> Failure | None:
    """Return a failure if the references are invalid or the prediction is blank."""
    failure = check_references(item.references)
    if failure is None and is_blank(item.prediction):
        return _empty_prediction("is blank")
    return failure


def _check_unanswerable(item: Item, metric: MetricInfo) -> Failure | None:
    """Return INVALID_INPUT if the item has right answers, or if the metric cannot grade abstentions."""
    if not metric.grades_abstentions:
        message = (
            f"answerable: {metric.name} needs references and cannot grade answers to a question without an answer. "
            "Use exact_match, token_f1, smile or another metric"
        )
        return Failure(Status.INVALID_INPUT, message)
    for name in ("references", "synthetic_answers"):
        if getattr(item, name):
            message = f"{name}: must be empty if answerable=false. Leave out {name}, or leave out answerable"
            return Failure(Status.INVALID_INPUT, message)
    return None


def _empty_prediction(why: str) -> Failure:
    message = f"prediction: {why}. Means of scored items leave this item out, and mean_empty_as_wrong counts it as 0"
    return Failure(Status.EMPTY_PREDICTION, message)


def check_question(
    question: str, *, why: str = "this metric compares answers with their question", where: str = "for this metric"
) -> Failure | None:
    """Return INVALID_INPUT if the question is blank or too long. `why` and `where` complete the messages."""
    if is_blank(question):
        return Failure(Status.INVALID_INPUT, f"question: is blank, but {why}")
    if len(question) > MAX_QUESTION_CHARACTERS:
        message = f"question: has {len(question)} characters; at most {MAX_QUESTION_CHARACTERS} are allowed {where}"
        return Failure(Status.INVALID_INPUT, message)
    return None


def cut_warning(*cut: bool) -> tuple[ResultWarning, ...]:
    """Return the warning TRUNCATED if any argument is True."""
    return (ResultWarning.TRUNCATED,) if any(cut) else ()


class FailureError(Exception):
    """An error that ends a metric's program, which then returns `result`."""

    def __init__(self, failure: Failure, result: MetricResult | None = None) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.result = result or MetricResult.failed(failure)


def stop_at(failure: Failure | None) -> None:
    """Raise FailureError unless `failure` is None."""
    if failure is not None:
        raise FailureError(failure)


def expect(asked: Rounds[T | Failure]) -> Rounds[T]:
    """Return the answer to a need; raise FailureError if the answer is a failure."""
    answer = yield from asked
    if isinstance(answer, Failure):
        raise FailureError(answer)
    return answer


def scoring(run: Callable[Concatenate[M, Item, A], Program]) -> Callable[Concatenate[M, Item, A], Program]:
    """Decorate a metric's `score` method: check the item unless it is a pair, and turn a FailureError into a result.

    An answer to a question without an answer is graded here, so that all metrics agree and need no model: the score is
    1 if the answer abstains, otherwise 0. The verdict is the same, if the metric has one for other items.
    """

    @wraps(run)
    def program(metric: M, item: Item, /, *args: A.args, **kwargs: A.kwargs) -> Program:
        try:
            if not item.answerable:
                stop_at(_check_unanswerable(item, metric.info))
                return _graded_abstention(item, metric.info, args[0] if args else kwargs["parameters"])
            stop_at(None if isinstance(item, Pair) else check_item(item))
            return (yield from run(metric, item, *args, **kwargs))
        except FailureError as error:
            return error.result

    return program


def _graded_abstention(item: Item, metric: MetricInfo, parameters: object) -> MetricResult:
    if getattr(parameters, "features_only", False):
        raise FailureError(Failure(Status.INVALID_INPUT, "answerable: a question without an answer has no features"))
    if is_blank(item.prediction):
        right = True
    elif isinstance(parameters, AnswerParameters):
        right = parameters.is_abstention(graded_text(item, parameters.answer))
    else:
        right = abstains(item.prediction)
    has_verdict = metric.has_verdict or getattr(parameters, "threshold", None) is not None
    return MetricResult(float(right), correct=right if has_verdict else None)


def preparing(
    run: Callable[Concatenate[T, ReferenceEntry, A], Preparation],
) -> Callable[Concatenate[T, ReferenceEntry, A], Preparation]:
    """Decorate a metric's `prepare` method: check the references, and turn a FailureError into a failure."""

    @wraps(run)
    def preparation(metric: T, entry: ReferenceEntry, /, *args: A.args, **kwargs: A.kwargs) -> Preparation:
        try:
            stop_at(check_references(entry.references))
            return (yield from run(metric, entry, *args, **kwargs))
        except FailureError as error:
            return error.failure

    return preparation


def ask_together(*needs: Need) -> Rounds[Any]:
    """Request all needs in one round, and return the answers in the needs' order.

    Raises:
        FailureError: An answer is a failure.
    """
    answers = yield needs
    stop_at(next((answer for answer in answers if isinstance(answer, Failure)), None))
    return answers


def sentence_needs(model: str, prediction: str, references: tuple[str, ...]) -> tuple[Embed, Embed]:
    """Return the needs for the vectors of a prediction and its references."""
    return Embed(model, (prediction,), Tier.PREDICTION), Embed(model, references, Tier.REFERENCE)


def embed_references(model: str, texts: tuple[str, ...]) -> Preparation:
    """Prepare references by requesting their vectors."""
    yield from expect(ask(Embed(model, texts, Tier.REFERENCE)))
    return None


def is_cut(*answers: Vectors) -> bool:
    """Return True if the encoder truncated a text."""
    # Bytes are searched faster than an array of a few flags, and this runs several times for each item.
    for answer in answers:  # noqa: SIM110 - for the same reason without a generator
        if b"\1" in answer.truncated.tobytes():
            return True
    return False


def take_choices(parameters: Parameters) -> None:
    """Convert the value of each enum field to a member of the enum. Call this function in `__post_init__`.

    Raises:
        ParameterError: A value is not in the field's enum.
    """
    for each in fields(parameters):
        if isinstance(each.default, StrEnum):
            kind = type(each.default)
            value = getattr(parameters, each.name)
            try:
                object.__setattr__(parameters, each.name, kind(value))
            except ValueError:
                raise ParameterError(each.name, f"must be one of {', '.join(kind)}, not {quoted(str(value))}") from None


def check_readable(metadata: ModelMetadata) -> None:
    """Raise ParameterError if a fit for the metric is unreadable."""
    for _, reason in metadata.unreadable:
        raise ParameterError("model", reason)


# A fit that calls no answer right lies just above the highest score.
_MAX_THRESHOLD = math.nextafter(1.0, math.inf)


@dataclass(frozen=True, slots=True)
class EncoderParameters(Parameters):
    """The parameters of a metric that compares vectors, and the base class of other metrics' parameters.

    `calibration` names the source of a fitted threshold.

    Raises:
        ParameterError: A choice is unknown, or the threshold is not a number up to 1.
    """

    model: str = ""
    threshold: float | None = None
    calibration: str = ""

    def __post_init__(self) -> None:
        take_choices(self)
        if self.threshold is not None and not (math.isfinite(self.threshold) and self.threshold <= _MAX_THRESHOLD):
            raise ParameterError(
                "threshold", f"must be a number up to 1, which is the highest score, not {self.threshold}"
            )

    def resolved(self, metadata: ModelMetadata) -> Self:
        """Return the parameters with the model's fitted threshold, unless a threshold is set or there is no fit.

        Raises:
            ParameterError: No threshold is set, and the model's fit is unreadable.
        """
        if self.threshold is not None:
            return self
        check_readable(metadata)
        found = calibration_for(metadata.calibrations, self)
        return self if found is None else replace(self, threshold=found.threshold, calibration=found.described)


@dataclass(frozen=True, slots=True)
class AnswerParameters(Parameters):
    """The parameters of a metric that needs no model, and the base class of other metrics' parameters.

    Raises:
        ParameterError: A choice is unknown.
    """

    answer: GradedAnswer = field(default=GradedAnswer.WHOLE, kw_only=True)

    def __post_init__(self) -> None:
        take_choices(self)

    def is_abstention(self, text: str) -> bool:
        """Return True if a text is a right answer to a question without an answer."""
        return is_blank(text) or abstains(text)


@lru_cache(maxsize=16)
def final_answer_of(completion: str) -> final_answer.FinalAnswer:
    """Return the final answer of a completion, of which the caller keeps at most MAX_READ_CHARACTERS."""
    # The metrics of a request grade an item one after another, so few completions have to be remembered.
    return final_answer.find_final_answer(completion)  # imported now: it is slow to import


def with_graded_answer(item: Item, answer: GradedAnswer) -> Item:
    """Return the item with only the part of its prediction that the metric grades.

    Raises:
        FailureError: The final answer is to be graded, but the prediction has none, or a blank one.
    """
    if answer is GradedAnswer.WHOLE:
        return item
    text = graded_text(item, answer)
    if is_blank(text):
        raise FailureError(_empty_prediction("has a blank final answer"))
    return replace(item, prediction=text)


def graded_text(item: Item, answer: GradedAnswer) -> str:
    """Return the part of the prediction that the metric grades, which may be blank.

    Raises:
        FailureError: The final answer is to be graded, but the prediction has none.
    """
    if answer is GradedAnswer.WHOLE:
        return item.prediction
    final = final_answer_of(item.prediction[-final_answer.MAX_READ_CHARACTERS :])
    if final.position == "nothing":
        raise FailureError(_empty_prediction(f"has no final answer, because {final.reason}"))
    try:
        return nfc(final.text)  # JSON's escapes can stand for text that is not NFC
    except TooManyMarksError as error:
        raise FailureError(Failure(Status.INVALID_INPUT, f"prediction: the final answer has {error}")) from None


class NothingToPrepare:
    """The base class of metrics that need no preparation."""

    def prepare(self, entry: ReferenceEntry, parameters: object) -> Preparation:
        """Check the references without requesting anything."""
        del parameters
        yield from ()
        return check_references(entry.references)


class TextMetric(NothingToPrepare, ABC, Generic[P]):
    """The base class of metrics that need neither an encoder nor a judge."""

    info: MetricInfo

    @scoring
    def score(self, item: Item, parameters: P, metadata: ModelMetadata) -> Program:
        """Grade an item without requesting anything."""
        del metadata
        yield from ()
        return self.grade(with_graded_answer(item, parameters.answer), parameters)

    @abstractmethod
    def grade(self, item: Item, parameters: P) -> MetricResult:
        """Grade an item that passes `check_item`, by all of its prediction; may raise FailureError."""


class MatchMetric(TextMetric[AnswerParameters]):
    """The base class of metrics without further parameters. The score is 1 if a reference matches, otherwise 0."""

    parameters_type = AnswerParameters

    @override
    def grade(self, item: Item, parameters: AnswerParameters) -> MetricResult:
        del parameters
        found = next((index for index, matches in enumerate(self.matches(item)) if matches), None)
        return MetricResult(float(found is not None), matched_reference=found, correct=found is not None)

    @abstractmethod
    def matches(self, item: Item) -> Iterable[bool]:
        """Compare each reference with the prediction, and return the results in order."""
