"""What a judge is shown of a pair: its two turns, with either answer first, and the turns before them."""

from dataclasses import dataclass
from functools import lru_cache

from gradewire_server.domain.item import Pair
from gradewire_server.domain.judge import Role, Turn
from gradewire_server.metrics.compared.parameters import CompareParameters
from gradewire_server.metrics.judged.mask_labels import without_praise
from gradewire_server.metrics.judged.neutralise import MAX_CHARACTERS, cut_to_words, neutralise
from gradewire_server.metrics.judged.prompt import answered
from gradewire_server.metrics.judged.prompts import Demonstration, PromptFile, Rendered, Variant
from gradewire_server.metrics.judged.prompts.shapes import PAIR_SETS
from gradewire_server.metrics.judged.reference_filter import (
    ReferenceChoice,
    Shown,
    choose_shown,
    count_references,
    without_rare,
    write_references,
)
from gradewire_server.metrics.judged.shown_item import CAPTION_SEPARATOR
from gradewire_server.metrics.judged.view import DEFAULT_SHARE
from gradewire_server.metrics.text.word_split import MAX_WORDS


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A pair as a judge sees it.

    Attributes:
        orders: Its turn with answer A first, and with answer B first.
        characters: Of the longer answer, as it is shown but for what makes it harmless.
        cut: Something of it is left out.
        masked: Words of an answer are not shown: see `without_praise`.
    """

    orders: tuple[Rendered, Rendered]
    characters: int
    cut: bool
    masked: bool

    @property
    def alike(self) -> bool:
        """Whether both answers are shown as the same text."""
        a_first, b_first = self.orders
        return a_first == b_first


def show_pair(pair: Pair, parameters: CompareParameters, most_characters: int = MAX_CHARACTERS) -> ShownPair:
    """Writes a pair that passes `check_pair` into its variant's template.

    Either order has the same texts, and a pair whose answers have changed places has the same two orders: so its
    verdicts are found where those of the first one are kept.

    Args:
        pair: Question and caption are cut at MAX_CHARACTERS, either answer at the variant's number of words.
        parameters: Say what is shown.
        most_characters: Of either answer that are shown: neither is to be cut where the other is not.
    """
    file, variant = parameters.file, parameters.file.variants[parameters.variant]
    question, question_cut = cut_to_words(pair.question, MAX_CHARACTERS)
    caption, caption_cut = cut_to_words(CAPTION_SEPARATOR.join(pair.captions) if parameters.caption else "", MAX_WORDS)
    (a, a_cut), (b, b_cut) = (
        _cut(answer, variant.prediction_words, most_characters) for answer in (pair.prediction, pair.rival)
    )
    shown = _shown_references(pair, file, " ".join(sorted((a, b)))) if parameters.references else None
    known = shown.counted.texts if shown else ()
    neutral = tuple(neutralise(answer, variant.delimiters) for answer in (a, b))
    # What both answers say praises neither.
    answers = tuple(
        without_praise(answer, variant.delimiters, (*known, other), question=question)
        for answer, other in (neutral, neutral[::-1])
    )
    fields = {
        "question": neutralise(question, variant.delimiters),
        "caption": neutralise(caption, variant.delimiters),
        "references": write_references(shown.counted, file.references, variant.delimiters) if shown else "",
    }
    orders = (_rendered(variant, fields, answers), _rendered(variant, fields, answers[::-1]))
    cut = question_cut or caption_cut or a_cut or b_cut or bool(shown and shown.cut)
    return ShownPair(orders, max(len(a), len(b)), cut, masked=answers != neutral)


@lru_cache(maxsize=64)
def fixed_turns(file: PromptFile, variant_name: str, *, caption: bool, image: bool) -> tuple[Turn, ...]:
    """The turns before a pair's: instructions, and demonstrations as pairs of turns."""
    variant = file.variants[variant_name]
    system = variant.instructions(caption=caption, image=image)
    turns = [Turn(Role.SYSTEM, system)] if system else []
    solved = file.demonstrations.get(PAIR_SETS[0], ()) if variant.demonstrations else ()
    for demonstration in solved:
        turns.append(Turn(Role.USER, _demonstrated(file, variant, demonstration, caption=caption).text))
        turns.append(Turn(Role.ASSISTANT, answered(variant.steps, demonstration.answers)))
    return tuple(turns)


def _cut(answer: str, most_words: int, most_characters: int) -> tuple[str, bool]:
    """The begin of an answer, and whether there is more."""
    text, cut = cut_to_words(answer, most_words)
    return text[:most_characters].rstrip(), cut or len(text) > most_characters


def _demonstrated(file: PromptFile, variant: Variant, solved: Demonstration, *, caption: bool) -> Rendered:
    counted = count_references(solved.references)
    fields = {
        "question": neutralise(solved.question, variant.delimiters),
        "caption": neutralise(solved.caption, variant.delimiters) if caption else "",
        "references": write_references(counted, file.references, variant.delimiters),
    }
    answers = tuple(neutralise(answer, variant.delimiters) for answer in (solved.prediction, solved.second))
    return _rendered(variant, fields, answers)


def _rendered(variant: Variant, fields: dict[str, str], answers: tuple[str, ...]) -> Rendered:
    first, second = answers
    return variant.item.render({**fields, "first": first, "second": second})


def _shown_references(pair: Pair, file: PromptFile, said: str) -> Shown:
    """The references of a pair; of more aliases than there is room for those that are closest to what was said."""
    counted = without_rare(count_references(pair.references), DEFAULT_SHARE)
    return choose_shown(counted, said, file.references, ReferenceChoice.ALL)
