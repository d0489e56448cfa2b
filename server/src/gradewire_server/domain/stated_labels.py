"""The label that a judge's text states, for servers without log probabilities.

Only a few forms of sentences state a label: the label alone, a label that is announced as the verdict, a statement
about the answer, a box, and a field of JSON. A question, a condition, a negation, a quotation or a list of options
states none. What stays ambiguous is UNPARSABLE with the reason, because a guess would become a score.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from gradewire_proto.final_answer.thinking import after_thinking
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.json_labels import fields_of_json, label_of_value
from gradewire_server.domain.label_forms import LabelForms, Plain, Statement

_MOST_READ: Final = 20_000
"""Characters at the end of a reply that are read. A judge concludes at the end."""
_LONGEST_SENTENCE: Final = 600
_STRUCK: Final = re.compile(r"~~|<(?:s|del|strike)\b|cancel\{|out\{|\u0336|\^H", re.IGNORECASE)
_REFUSAL: Final = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:cannot|can't|can not|won't|will not|must decline)|as an ai\b|"
    r"unable to (?:assist|help|answer|judge|grade|evaluate|determine)|sorry, (?:but )?i)",
    re.IGNORECASE,
)


ANSWERED: Final = "the judge's server answered with "
"""The beginning of every reason."""


def unreadable(reason: str) -> Failure:
    """Return the failure of a reply that states no label for sure."""
    return Failure(Status.UNPARSABLE, ANSWERED + reason)


NOTHING: Final = unreadable("an empty text")
UNFINISHED: Final = unreadable("thoughts only, without a verdict after them")
REFUSED: Final = unreadable("a refusal instead of a label")
NO_LABEL: Final = unreadable("none of the labels")
NOT_STATED: Final = unreadable(
    "a label only in a question, a condition, a negation, a quotation or a list, and states none as the verdict"
)
CONTRADICTION: Final = unreadable("several labels, and none of them is clearly the last word")
NO_FIELD: Final = unreadable("JSON in which no field has a label as its value")


def stated_label(
    text: str, options: Sequence[str], opening: str, *, whole: bool, meanings: Sequence[object] = ()
) -> int | Failure:
    """Return the index of the label that a reply states as its verdict, or the reason why no label is certain.

    Of labels with one meaning, the first is returned.

    Args:
        text: The reply.
        options: The labels.
        opening: The beginning that the judge was asked to write, or "" if the judge continued a given beginning.
        whole: False if the reply was cut off, so that its last sentence may go on.
        meanings: What each label stands for; empty if all differ.
    """
    spoken = after_thinking(text)
    if spoken is None:
        return UNFINISHED
    spoken = _without_struck(spoken[-_MOST_READ:])
    if not spoken.strip():
        return NOTHING if not text.strip() else UNFINISHED
    forms = _forms(tuple(options), opening, tuple(meanings))
    said, fields = fields_of_json(spoken)
    found = _in_sentences(forms.plain(said, whole=whole or fields is not None), forms) if said.strip() else NO_LABEL
    if fields is not None:
        found = _joined(label_of_value(fields, forms), found)
    refuses = isinstance(found, Failure) and _REFUSAL.search(spoken) is not None
    return REFUSED if refuses else found


def _joined(in_fields: int | None, in_text: int | Failure) -> int | Failure:
    """Return the label of a field in JSON, unless the text around the JSON states another one."""
    if in_fields is None:
        return NO_FIELD
    return CONTRADICTION if in_text is CONTRADICTION or in_text not in {in_fields, NO_LABEL, NOT_STATED} else in_fields


@lru_cache(maxsize=256)
def _forms(options: tuple[str, ...], opening: str, meanings: tuple[object, ...]) -> LabelForms:
    return LabelForms(options, opening, meanings)


def _without_struck(text: str) -> str:
    if _STRUCK.search(text) is None:
        return text
    from gradewire_proto.final_answer import without_struck_text  # noqa: PLC0415 - slow to import

    return without_struck_text(text)


def _in_sentences(plain: Plain, forms: LabelForms) -> int | Failure:
    last: Statement | None = None
    is_open = mentioned = False
    limited: int | None = None
    for number, sentence in enumerate(plain.sentences):
        named = forms.named(sentence) if len(sentence) <= _LONGEST_SENTENCE else frozenset[int]()
        mentioned |= bool(named)
        stated = _statement(sentence, forms, named)
        if stated is not None and not forms.is_harmless(sentence[stated.end :]):
            limited, stated = stated.index, None
        if stated is None:
            is_open |= last is not None and forms.takes_back(sentence, last.index, named)
        elif number == len(plain.sentences) - 1 and not plain.whole and not forms.is_reason(sentence[stated.end :]):
            # A sentence that was cut may go on with a condition.
            is_open |= last is not None and last.index != stated.index
        else:
            # An announced verdict or a conclusion is the last word about what was said before it.
            concludes = stated.last_word or (stated.announced and (last is None or not last.announced))
            earlier = limited if last is None else last.index
            is_open = earlier not in {None, stated.index} and not concludes
            last = stated
    if last is None:
        return NOT_STATED if mentioned else NO_LABEL
    if is_open or (not plain.whole and forms.may_begin_another(plain.sentences[-1], last.index)):
        return CONTRADICTION
    return last.index


def _statement(sentence: str, forms: LabelForms, named: frozenset[int]) -> Statement | None:
    if not named or sentence.rstrip(" \"')]").endswith("?"):
        return None
    found = forms.statement(sentence)
    return None if found is None or (len(named) > 1 and not found.compares) else found
