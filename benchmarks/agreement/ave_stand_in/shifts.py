"""Part 3: a reference in another form that means the same."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.agreement.ave_stand_in.values import other_value_form

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.agreement.ave_stand_in.words import Thesaurus, WordForms

# "the birth of Jesus": what stands before one of these is the head, and has the number.
_AFTER_THE_HEAD = frozenset(
    {"of", "in", "on", "at", "for", "from", "to", "with", "by", "and", "or", "that", "which", "who"}
)
# Two or three words written large, the last no number as in "Edward IV" and no "Jr.".
_NAME = re.compile(
    r"(?P<first>(?!The\b)[^\W\d_a-z][\w.'-]*(?: [^\W\d_a-z][\w.'-]*)?) (?P<last>[^\W\d_a-z][\w'-]*[^\W\d_A-Z]{2})"
)
_LONGEST_SHIFTED_CHARACTERS = 200
KEPT = "kept"


class Shift(NamedTuple):
    """A reference in another form.

    Attributes:
        text: As it is now.
        how: "singular", "plural", "past", "gerund", "synonym"; "date order", "month", "year", "percent", "digits" or
            "words" where it is a date or begins with a number; "name order" where it names a person; "kept" where
            nothing applies and the text is the reference itself.
    """

    text: str
    how: str


def shifted(reference: str, *, key: str, of_person: bool, words: WordForms, thesaurus: Thesaurus) -> Shift:
    """Shifts a reference.

    Dates and numbers are written otherwise, for an inflection would break them; else the head noun takes its other
    number or the phrase its synonym, by `key` where both are there; else an infinitive or participle takes another
    tense. Names have none of these, but for those that WordNet knows by another name: that of a person is written as
    an index does ("Doe, Jane"), others stay.

    Args:
        reference: The text.
        key: Chooses where there is a choice.
        of_person: Whether the question asks for a person.
        words: For inflections.
        thesaurus: For synonyms; only phrases with one sense are replaced, others might come to mean something else.
    """
    text = " ".join(unicodedata.normalize("NFC", reference[: _LONGEST_SHIFTED_CHARACTERS + 1]).split())
    if not text or len(reference) > _LONGEST_SHIFTED_CHARACTERS:
        return Shift(reference, KEPT)
    if (value := other_value_form(text)) is not None:
        return Shift(*value)
    ways: list[Callable[[], Shift | None]] = [
        lambda: _other_number(text, words, thesaurus),
        lambda: _synonym(text, words, thesaurus),
    ]
    if hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] % 2:
        ways.reverse()
    ways.append(lambda: _other_tense(text, words))
    if of_person:
        ways.append(lambda: _name_order(text))
    return next((found for way in ways if (found := way()) is not None), Shift(reference, KEPT))


def _other_number(text: str, words: WordForms, thesaurus: Thesaurus) -> Shift | None:
    split = text.split(" ")
    head = next((place for place, word in enumerate(split) if word.lower() in _AFTER_THE_HEAD), len(split)) - 1
    if head < 0 or (found := words.other_number(split[head])) is None or not _is_common(split, head, words, thesaurus):
        return None
    form, number = found
    split[head] = form.capitalize() if split[head][0].isupper() else form
    if number == "plural" and split[0].lower() in {"a", "an"}:
        del split[0]
    return Shift(" ".join(split), number)


def _is_common(split: Sequence[str], head: int, words: WordForms, thesaurus: Thesaurus) -> bool:
    """Whether the head is a noun and no name: written small, or alone and in no sense of WordNet written large."""
    word = split[head]
    lemma = words.lemma(word, "NOUN") or word.lower()
    named = [member for sense in thesaurus.noun_senses(lemma) for member in sense if member.lower() == lemma]
    if word.islower():
        return bool(named)
    return len(split) == 1 and word.istitle() and bool(named) and all(member.islower() for member in named)


def _synonym(text: str, words: WordForms, thesaurus: Thesaurus) -> Shift | None:
    """The phrase's synonym, in its number; None but for a phrase of one sense."""
    article, _, bare = text.rpartition(" ") if text.count(" ") == 1 else ("", "", text)
    if article.lower() not in {"", "a", "an", "the"}:
        article, bare = "", text
    before, _, last = bare.lower().rpartition(" ")
    lemma = words.lemma(last, "NOUN")
    plural = lemma is not None and lemma != last
    for phrase in dict.fromkeys((bare.lower(), f"{before} {lemma or last}".strip())):
        senses = thesaurus.noun_senses(phrase)
        if len(senses) != 1:
            continue
        # "Edward" for "Edward IV" would say less.
        said = {*phrase.split(), *bare.lower().split()}
        found = next((member for member in senses[0] if not said.issuperset(member.lower().split())), None)
        if found is None:
            return None
        if plural and phrase != bare.lower():
            found = _in_the_plural(found, words)
        return Shift(f"the {found}" if article.lower() == "the" else found, "synonym")
    return None


def _name_order(text: str) -> Shift | None:
    found = _NAME.fullmatch(text)
    return Shift(f"{found['last']}, {found['first']}", "name order") if found else None


def _in_the_plural(phrase: str, words: WordForms) -> str:
    before, blank, last = phrase.rpartition(" ")
    found = words.other_number(last)
    return f"{before}{blank}{found[0]}" if found is not None and found[1] == "plural" else phrase


def _other_tense(text: str, words: WordForms) -> Shift | None:
    first, blank, rest = text.partition(" ")
    if first.lower() == "to" and rest:
        verb, blank, rest = rest.partition(" ")
        form = words.verb_form(verb, "VBG")
        return Shift(f"{form}{blank}{rest}", "gerund") if form else None
    if first.endswith("ing") and (form := words.verb_form(first, "VBD")):
        return Shift(f"{form}{blank}{rest}", "past")
    if first.endswith("ed") and (form := words.verb_form(first, "VBG")):
        return Shift(f"{form}{blank}{rest}", "gerund")
    return None
