"""Choice match: the option that an answer to a multiple-choice question chooses, compared with the references.

The rules are this project's own; docs/reference/metrics.md describes them.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final

from typing_extensions import override

from gradewire_server.domain.items import Failure, Item, MetricResult
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.choices.chosen import MAX_ANSWER
from gradewire_server.metrics.choices.grading import Graded, clear_choice, grade_item
from gradewire_server.metrics.choices.references import MAX_REFERENCES
from gradewire_server.metrics.common import AnswerParameters, FailureError, TextMetric, cut_warning


class ChoiceMatch(TextMetric[AnswerParameters]):
    """A score of 1 if the answer chooses the option that a reference names, otherwise 0.

    The status is INVALID_INPUT if no options are found and no reference is a single letter, and if a reference names
    no option, unless the answer chooses what another reference names.
    """

    info = MetricInfo(
        name="choice_match",
        version=1,
        description="1 if the answer chooses the option of a multiple-choice question that a reference names, by "
        "letter, number, text or exclusion; otherwise 0.",
        citation="gradewire's own; see docs/reference/metrics.md",
    )
    parameters_type = AnswerParameters

    @override
    def grade(self, item: Item, parameters: AnswerParameters) -> MetricResult:
        del parameters
        graded = grade_item(item)
        if isinstance(graded, Failure):
            raise FailureError(graded)
        cut = cut_warning(len(item.prediction) > MAX_ANSWER, len(item.references) > MAX_REFERENCES)
        return replace(graded.result, warnings=cut)


_MAY_HAVE_OPTIONS: Final = re.compile(r"(?<![^\W\d_])[BbＢｂ](?![^\W\d_])|(?<!\d)[2２](?!\d)|②")
"""A second label, without which a question lists no options."""
_LETTER: Final = re.compile(r"\s*[(\[]?[A-Za-z][)\]]?[.:]?\s*")


@lru_cache(maxsize=16)
def choice_of(item: Item) -> Graded | None:
    """Return an answer's choice if the item is clearly a multiple-choice question; otherwise None.

    The question has options, or says that a letter is the answer, and each reference names an option. Metrics that
    grade items of all kinds call this function; it does next to nothing for other items.
    """
    if not item.references or len(item.references) > MAX_REFERENCES:
        return None
    letters = all(_LETTER.fullmatch(reference) for reference in item.references)
    if not item.choices and not letters and _MAY_HAVE_OPTIONS.search(item.question) is None:
        return None
    return clear_choice(item)
