"""The parameters of `compare`, and the texts of a pair or list that a judge sees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from typing_extensions import override

from gradewire_proto.choices import CompareDecision, CompareMode, ComparePreset, ShownReferences
from gradewire_proto.wire_rules import MAX_LISTED_ANSWERS
from gradewire_server.domain.items import Failure, Pair, Status
from gradewire_server.metrics.common import check_question, check_references, has_letter_or_digit
from gradewire_server.metrics.judged.metric import PromptParameters
from gradewire_server.metrics.judged.prompt import CAPTION_SEPARATOR, without_praise
from gradewire_server.metrics.judged.references import (
    DEFAULT_SHARE,
    count_references,
    shown_references,
    without_rare,
    write_references,
)
from gradewire_server.metrics.prompts.neutralise import (
    MAX_CHARACTERS,
    Delimiters,
    cut_to_words,
    neutralise,
    without_markup,
)
from gradewire_server.metrics.text.words import MAX_WORDS

_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class CompareParameters(PromptParameters):
    """The parameters of `compare` (see types.proto)."""

    metric: ClassVar[str] = "compare"

    preset: ComparePreset = ComparePreset.V1
    mode: CompareMode = CompareMode.VERDICT
    decision: CompareDecision = CompareDecision.BOTH
    references: bool = False
    image: bool = False

    @classmethod
    @override
    def preset_values(cls, preset: str | None) -> Mapping[str, Any]:
        return _PRESETS.get(preset or "", {})

    @property
    @override
    def variant(self) -> str:
        return f"{self.mode}_with_references" if self.references else str(self.mode)


_PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    ComparePreset.VISIT: {"mode": CompareMode.REASON, "prompt": "compare_visit/1"},
    ComparePreset.LISTWISE: {"mode": CompareMode.LISTWISE, "prompt": "compare_listwise/1"},
}


def check_pair(pair: Pair, parameters: CompareParameters) -> Failure | None:
    """Return INVALID_INPUT if something that the judge needs is missing, or EMPTY_PREDICTION if an answer is blank."""
    if pair.others and parameters.mode is not CompareMode.LISTWISE:
        return Failure(Status.INVALID_INPUT, "others: only mode=listwise ranks more than two answers")
    if len(pair.answers) > MAX_LISTED_ANSWERS:
        most = MAX_LISTED_ANSWERS - _PAIR
        return Failure(Status.INVALID_INPUT, f"others: has {len(pair.others)} answers, but at most {most} are allowed")
    failure = check_question(
        pair.question, why="a judge needs the question to compare answers", where="in a comparison"
    )
    if failure is None and parameters.references:
        failure = check_references(pair.references)
    if failure is None and parameters.image and not pair.images:
        failure = Failure(Status.INVALID_INPUT, "images: are empty, but image=true needs an image")
    if failure is not None:
        return failure
    for name, answer in zip(_names(pair), pair.answers, strict=True):
        if not has_letter_or_digit(answer):
            message = f"{name}: contains no letter or digit to compare"
            return Failure(Status.EMPTY_PREDICTION, message)
    return None


def _names(pair: Pair) -> list[str]:
    return ["answer_a", "answer_b", *(f"others[{index}]" for index in range(len(pair.others)))]


def look_the_same(pair: Pair) -> bool:
    """Return True if a reader sees no difference between the answers except white space."""
    first = without_markup(pair.prediction)
    return all(without_markup(answer) == first for answer in pair.answers[1:])


@dataclass(frozen=True, slots=True)
class ShownTexts:
    """The texts of a pair or list as the judge sees them.

    Attributes:
        fields: The prompt's fields except the answers.
        characters: The length of the longest answer before words were masked.
        cut: True if a text was cut.
        masked: True if words of an answer were removed.
    """

    fields: Mapping[str, str]
    answers: tuple[str, ...]
    characters: int
    cut: bool
    masked: bool


def show_texts(
    pair: Pair,
    parameters: CompareParameters,
    delimiters: Delimiters,
    most_characters: int = MAX_CHARACTERS,
    *,
    praise: Delimiters | None = None,
) -> ShownTexts:
    """Make the texts of a checked pair or list harmless, with at most `most_characters` of each answer.

    `praise` are the delimiters whose labels answers must not give themselves; None means `delimiters`.
    """
    file, variant = parameters.file, parameters.judged_variant
    question, question_cut = cut_to_words(pair.question, MAX_CHARACTERS)
    caption, caption_cut = cut_to_words(CAPTION_SEPARATOR.join(pair.captions) if parameters.caption else "", MAX_WORDS)
    cut_answers = [_cut_answer(answer, variant.prediction_words, most_characters) for answer in pair.answers]
    texts = [text for text, _ in cut_answers]
    shown = None
    if parameters.references:
        kept = without_rare(count_references(pair.references), DEFAULT_SHARE)
        # If there is no space for all aliases, show the aliases that are closest to one of the answers.
        shown = shown_references(pair.references, kept, " ".join(sorted(texts)), file.references, ShownReferences.ALL)
    known = shown.counted.texts if shown else ()
    neutral = tuple(neutralise(answer, delimiters) for answer in texts)
    # Words that both answers of a pair contain praise neither of them. A list's answers are not compared like this.
    others = [(neutral[1],), (neutral[0],)] if len(neutral) == _PAIR else [()] * len(neutral)
    answers = tuple(
        without_praise(answer, praise or delimiters, (*known, *other), question=question)
        for answer, other in zip(neutral, others, strict=True)
    )
    fields = {
        "question": neutralise(question, delimiters),
        "caption": neutralise(caption, delimiters),
        "references": write_references(shown.counted, file.references, delimiters) if shown else "",
    }
    cut = question_cut or caption_cut or any(was_cut for _, was_cut in cut_answers) or bool(shown and shown.cut)
    return ShownTexts(fields, answers, max(map(len, texts)), cut, answers != neutral)


def _cut_answer(answer: str, most_words: int, most_characters: int) -> tuple[str, bool]:
    text, cut = cut_to_words(answer, most_words)
    return text[:most_characters].rstrip(), cut or len(text) > most_characters
