"""Write part 3: rewrite a reference with inflections, synonyms or other value formats."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gradewire_cli.lazy_commands import server_module

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# The lexicon has no longer words.
_LONGEST_WORD = 40
_REMEMBERED = 4096
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {
    **dict(enumerate(_ONES)),
    **{10 * ten: name for ten, name in enumerate(_TENS, 2)},
    **{10 * ten + one: f"{name}-{_ONES[one]}" for ten, name in enumerate(_TENS, 2) for one in range(1, 10)},
}
_NUMBERS = {name: number for number, name in _WORDS.items()}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# A month's full name or first three letters, or "Sept".
MONTH = "|".join((*(f"{month[:3]}(?:{month[3:]})?" for month in _MONTHS), "Sept"))
DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[0-9]{3,4})"
_DATES = (
    (
        re.compile(rf"(?P<month>{MONTH})\.?\s+(?P<day>{DAY})(?:\s*,\s*|\s+){_YEAR}", re.IGNORECASE),
        "{day} {month} {year}",
    ),
    (
        re.compile(rf"(?P<day>{DAY})\s+(?:of\s+)?(?P<month>{MONTH})\.?,?\s+{_YEAR}", re.IGNORECASE),
        "{month} {day}, {year}",
    ),
)
_MONTH_OF_YEAR = re.compile(rf"(?P<month>{MONTH})\.?,?\s+(?P<of>of\s+)?{_YEAR}", re.IGNORECASE)
_PERCENT = re.compile(r"(?P<number>[0-9]{1,3}(?:[.,][0-9]{1,2})?)\s*(?P<sign>%|per\s?cent)", re.IGNORECASE)
_YEAR_ALONE = re.compile(r"(?:(?P<led>in)\s+)?(?P<year>1[0-9]{3}|20[0-9]{2})", re.IGNORECASE)
_MOST_DIGITS = 2
# Dates and numbers are short, so longer texts are not searched.
_LONGEST_CHARACTERS = 200
# The head noun stands before one of these words: "the birth of Jesus".
_AFTER_THE_HEAD = frozenset(
    {"of", "in", "on", "at", "for", "from", "to", "with", "by", "and", "or", "that", "which", "who"}
)
# Two or three capitalised words; the last is neither a number, as in "Edward IV", nor "Jr.".
_NAME = re.compile(
    r"(?P<first>(?!The\b)[^\W\d_a-z][\w.'-]*(?: [^\W\d_a-z][\w.'-]*)?) (?P<last>[^\W\d_a-z][\w'-]*[^\W\d_A-Z]{2})"
)
_LONGEST_SHIFTED_CHARACTERS = 200
KEPT = "kept"


class Thesaurus(Protocol):
    """A dictionary of the senses of nouns."""

    def noun_senses(self, phrase: str) -> tuple[tuple[str, ...], ...]:
        """Return the synonyms for each sense of a lower-case base form, the most frequent sense first."""
        ...


class WordForms:
    """Inflections from lemminflect's lexicon.

    Raises:
        InputError: lemminflect is not installed.
    """

    def __init__(self) -> None:
        self._lexicon = server_module("lemminflect")
        self._lemmas = lru_cache(maxsize=_REMEMBERED)(self._looked_up)

    def lemma(self, word: str, part: str) -> str | None:
        """Return a word's first lemma in lower case, or None if the lexicon lacks the word; `part` is NOUN or VERB."""
        lemmas = self._lemmas(word.lower(), part)
        return lemmas[0] if lemmas else None

    def is_plural(self, word: str) -> bool:
        """Return True for a plural noun, but not for unchanging forms such as "sheep"."""
        lemma = self.lemma(word, "NOUN")
        return lemma is not None and lemma != word.lower()

    def other_number(self, word: str) -> tuple[str, str] | None:
        """Return a noun's other form and "singular" or "plural" for it, or None if the noun has no other form."""
        lowered = word.lower()
        if (lemma := self.lemma(lowered, "NOUN")) is None:
            return None
        if lemma != lowered:
            return lemma, "singular"
        plurals = [form for form in self._inflected(lemma, "NNS") if form != lowered]
        return (plurals[0], "plural") if plurals else None

    def is_participle(self, word: str) -> bool:
        """Return True if the word can be the past participle of a verb."""
        lemma = self.lemma(word, "VERB")
        return lemma is not None and lemma != word.lower() and word.lower() in self._inflected(lemma, "VBN", "VBD")

    def verb_form(self, word: str, tag: str) -> str | None:
        """Return a verb inflected for a Penn Treebank tag (VBD, VBG), or None if the form is missing or unchanged."""
        if (lemma := self.lemma(word, "VERB")) is None:
            return None
        return next((form for form in self._inflected(lemma, tag) if form != word.lower()), None)

    def _inflected(self, lemma: str, *tags: str) -> list[str]:
        # If the participle equals the past, the lexicon may list the word only with the past's tag.
        return [form for tag in tags for form in self._lexicon.getInflection(lemma, tag, inflect_oov=False)]

    def _looked_up(self, word: str, part: str) -> tuple[str, ...]:
        # The lexicon has no words with a hyphen or an apostrophe. Malicious inputs contain very long words.
        if len(word) > _LONGEST_WORD or not word.isalpha():
            return ()
        found: Any = self._lexicon.getAllLemmas(word, upos=part)
        return tuple(found.get(part, ()))


def other_value_form(text: str) -> tuple[str, str] | None:
    """Return a date, or a text that starts with a number up to 99, in a different format; None for other texts.

    The second value is the change: "date order", "month", "year", "percent", "digits" or "words".
    """
    if len(text) > _LONGEST_CHARACTERS:
        return None
    for pattern, order in _DATES:
        if found := pattern.fullmatch(text):
            day = found["day"].rstrip("stndrhSTNDRH")
            return order.format(day=int(day), month=_full(found["month"]), year=found["year"]), "date order"
    if found := _MONTH_OF_YEAR.fullmatch(text):
        return f"{_full(found['month'])} {'' if found['of'] else 'of '}{found['year']}", "month"
    if found := _YEAR_ALONE.fullmatch(text):
        return (found["year"] if found["led"] else f"the year {found['year']}"), "year"
    return _other_number_form(text)


def _full(month: str) -> str:
    return next(name for name in _MONTHS if name[:3].lower() == month[:3].lower())


def _other_number_form(text: str) -> tuple[str, str] | None:
    if found := _PERCENT.fullmatch(text):
        return f"{found['number']}{' percent' if found['sign'] == '%' else '%'}", "percent"
    first, blank, rest = text.partition(" ")
    if (number := _NUMBERS.get(first.lower())) is not None:
        return f"{number}{blank}{rest}", "digits"
    # int() also accepts digits of other scripts.
    if len(first) <= _MOST_DIGITS and first.isascii() and first.isdigit():
        return f"{_WORDS[int(first)]}{blank}{rest}", "words"
    return None


class Shift(NamedTuple):
    """A rewritten reference.

    Attributes:
        text: The new text.
        how: "singular", "plural", "past", "gerund", "synonym", a change of `other_value_form`, "name order" for
            persons, or "kept" if the text is unchanged.
    """

    text: str
    how: str


def shifted(reference: str, *, key: str, of_person: bool, words: WordForms, thesaurus: Thesaurus) -> Shift:
    """Rewrite a reference; `key` seeds the choice between alternatives.

    Dates and numbers get a different format, because an inflection would break them. In another text, the head noun
    changes between singular and plural, or a synonym replaces a phrase with a single sense. If neither is possible, an
    infinitive or participle changes its tense. A name changes only if WordNet has a second name. A person's name is
    reversed ("Doe, Jane").
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
    """Return True if the head is in lower case, or is a single word that WordNet never capitalises."""
    word = split[head]
    lemma = words.lemma(word, "NOUN") or word.lower()
    named = [member for sense in thesaurus.noun_senses(lemma) for member in sense if member.lower() == lemma]
    if word.islower():
        return bool(named)
    return len(split) == 1 and word.istitle() and bool(named) and all(member.islower() for member in named)


def _synonym(text: str, words: WordForms, thesaurus: Thesaurus) -> Shift | None:
    """Return a synonym in the phrase's number, or None unless the phrase has exactly one sense."""
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
        # Do not shorten: "Edward" says less than "Edward IV".
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
