"""What a judge is shown of an item, and of what kind its question is."""

from dataclasses import dataclass
from typing import Final

from gradewire_server.domain.item import Item
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.checks import check_item, check_question, has_letter_or_digit
from gradewire_server.metrics.judged.binary_questions import is_binary
from gradewire_server.metrics.judged.mask_labels import without_praise
from gradewire_server.metrics.judged.neutralise import MAX_CHARACTERS, cut_to_words, neutralise
from gradewire_server.metrics.judged.prompts import PromptFile, Rendered, Variant
from gradewire_server.metrics.judged.reference_filter import (
    Counted,
    choose_shown,
    count_references,
    without_rare,
    write_references,
)
from gradewire_server.metrics.judged.view import View
from gradewire_server.metrics.text.word_split import MAX_WORDS
from gradewire_server.metrics.text.yes_no import leading_verdict

CAPTION_SEPARATOR: Final = " / "


def check_judged(item: Item) -> Failure | None:
    """As `check_item` and `check_question`; also EMPTY_PREDICTION for an answer without any letter or digit."""
    failure = check_item(item) or check_question(item.question)
    if failure is None and not has_letter_or_digit(item.prediction):
        return Failure(Status.EMPTY_PREDICTION, "prediction: has no letter and no digit, so there is nothing to judge")
    return failure


def kind_of_question(item: Item, counted: Counted) -> str:
    """Which demonstrations fit: "binary", "short" for questions about pictures, "long" for questions about texts.

    A question is about a picture where the item has captions or its references are annotators' votes. The
    prediction has no say in it: all answers to a question are judged in the same light.
    """
    if is_binary(counted):
        return "binary"
    return "short" if item.captions or counted.votes else "long"


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item as a judge sees it.

    Attributes:
        rendered: Its turn.
        kind: See `kind_of_question`.
        cut: Something of it is left out.
        masked: Words of the prediction are not shown: see `without_praise`.
        matched_reference: The alias that is shown alone; None where several, or votes, are shown.
    """

    rendered: Rendered
    kind: str
    cut: bool
    masked: bool
    matched_reference: int | None


def show_item(item: Item, file: PromptFile, variant: Variant, view: View) -> ShownItem:
    """Writes an item that passes `check_judged` into a variant's template.

    Args:
        item: Question and caption are cut at MAX_CHARACTERS, the prediction at the variant's number of words.
        file: Says how references are written.
        variant: Its template.
        view: What is shown.
    """
    counted = count_references(item.references)
    prediction, prediction_cut = cut_to_words(item.prediction, variant.prediction_words)
    question, question_cut = cut_to_words(item.question, MAX_CHARACTERS)
    described, caption_cut = cut_to_words(CAPTION_SEPARATOR.join(item.captions) if view.caption else "", MAX_WORDS)
    references = choose_shown(without_rare(counted, view.share), prediction, file.references, view.references)
    shown = answered = neutralise(prediction, variant.delimiters)
    # "True." and "correct" are answers to a yes/no question, and say nothing of themselves.
    if not is_binary(counted) or leading_verdict(prediction) is None:
        shown = without_praise(answered, variant.delimiters, references.counted.texts, question=question)
    fields = {
        "question": neutralise(question, variant.delimiters),
        "references": write_references(references.counted, file.references, variant.delimiters),
        "prediction": shown,
        "caption": neutralise(described, variant.delimiters),
    }
    return ShownItem(
        rendered=variant.item.render(fields),
        kind=view.kind or kind_of_question(item, counted),
        cut=prediction_cut or question_cut or caption_cut or references.cut,
        masked=shown != answered,
        matched_reference=references.alone,
    )
