"""Compare references that are, as a whole, a truth value, a ratio, a score, a symbol or the number zero."""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from gradewire_proto.final_answer.words import expression
from gradewire_server.metrics.values.identifiers import Identifier
from gradewire_server.metrics.values.quantities import Quantity
from gradewire_server.metrics.values.reading import Kind, Outcome, values_of
from gradewire_server.metrics.values.tokens import DIGITS, VOCABULARY, plain, roman_value, tokens_of
from gradewire_server.metrics.values.units import NAMES, SYMBOLS, Unit

_WORDS: Final = VOCABULARY["special"]
_MAX_QUESTION: Final = 2_048
_MAX_ANSWER: Final = 4_096
_MAX_REFERENCE: Final = 48
_AROUND: Final = " \t\n.!\"'`*:,;()"

_PARTS: Final = re.compile(r"\s*(?:[,;]|\band\b|\bund\b|\bet\b|\by\b|&)\s*")
_LABEL_FIRST: Final = re.compile(r"([^\W\d_]{1,24})\s*(?:=|:|is|was)?\s*(-?\d+(?:\.\d+)?)(?:\s?[^\W\d]{1,8})?")
_LONG_WORD: Final = re.compile(r"[^\W\d_]{3}")
_LABEL_LAST: Final = re.compile(r"(-?\d+(?:\.\d+)?)\s+([^\W\d_]{2,24})")
_TRUTH: Final = {
    **dict.fromkeys(_WORDS["yes"].split(), True),
    **dict.fromkeys(_WORDS["no"].split(), False),
}
_TRUTH_WORD: Final = re.compile(expression(_TRUTH))
_DENIED: Final = re.compile(rf"{expression(_WORDS['denials'])}\s?(?:\w+\s)?$")
_SENTENCE_END: Final = re.compile(r"[.!?;\n](?:\s|$)|[\u3002\uff01]")
_CLAUSE_END: Final = re.compile(r"[.!?;,\n\u3002\uff01\uff0c]")
_CHINESE: Final = re.compile(r"[\u4e00-\u9fff]")

_ASKS_FOR_SCORE: Final = re.compile(expression(_WORDS["scores"]), re.IGNORECASE)
_ASKS_FOR_RATIO: Final = re.compile(expression(_WORDS["ratios"]), re.IGNORECASE)
_NUMBER: Final = r"\d{1,6}(?:\.\d{1,6})?"
_RATIO: Final = re.compile(
    rf"(?<![\d.,/:])\(*({_NUMBER})\)*((?:\s?(?::|/|-|\b(?:to|zu|à|a|pour|por)\b|比)\s?\(*{_NUMBER}\)*){{1,5}})(?![\d/:]|[.,]\d)"
)
_OF_PARTS: Final = re.compile(r"\bparts?\b|\bTeile?n?\b|\bpartes?\b|\u4efd")
_NUMBERS: Final = re.compile(_NUMBER)
_SIGNED: Final = re.compile(rf"-?{_NUMBER}")
_IN_WORDS: Final = {word: str(value) for value, word in enumerate(_WORDS["small"].split())}
_SMALL: Final = re.compile(expression(_IN_WORDS))

_ASKS_FOR_COORDINATES: Final = re.compile(expression(_WORDS["coordinates"]), re.IGNORECASE)
_OF_POINT: Final = re.compile(r"\b(?:polar|cartesian|point|vertex|vector|Punkt|Scheitel)", re.IGNORECASE)
_SYMBOL: Final = re.compile(r"[A-Za-z\u03b1-\u03c9]{1,3}|(?=[^\d]*\d)[A-Za-z\d]{2,24}")
"""A symbol of up to three letters, or a formula with numbers. In longer words, case means nothing."""
_LONGEST_SYMBOL: Final = 3
"""Maximum number of letters in a symbol without numbers."""
_ASKS_FOR_VERSE: Final = re.compile(expression(_WORDS["verses"]), re.IGNORECASE)
_VERSE: Final = re.compile(r"(?<![\d:.,])(\d{1,3})[:.,](\d{1,3})(?![\d:]|[.,]\d)")
_ASKS_FOR_VERSION: Final = re.compile(expression(_WORDS["versions"]), re.IGNORECASE)
_VERSION: Final = re.compile(r"(?<![\d.])\d{1,5}(?:\.\d{1,5}){1,4}(?![\d]|\.\d)")
_ASKS_FOR_ROMAN: Final = re.compile(expression(_WORDS["romans"]), re.IGNORECASE)
_LATIN: Final = re.compile(r"\b[IVXLCDM]{1,15}\b")
_CODE: Final = re.compile(r"0\d{1,15}")
_DIGITS: Final = re.compile(r"(?<![\d.,])\d+(?![\d]|[.,]\d)")
_ASKS_FOR_CODE: Final = re.compile(expression(_WORDS["code_asked"]), re.IGNORECASE)
_NOTHING: Final = re.compile(expression(_WORDS["nothing"]), re.IGNORECASE)
_ASKS_FOR_UNIT: Final = re.compile(expression(_WORDS["unit_asked"]), re.IGNORECASE)
_COMPOUNDS: Final = {formula: expression(names) for formula, names in _WORDS["compounds"].items()}
_ASKS_FOR_FORMULA: Final = re.compile(expression(_WORDS["formula_asked"]), re.IGNORECASE)

Compared = tuple[Kind, Outcome]


def compare_special(question: str, reference: str, answer: str) -> Compared | None:
    """Compare an answer with a reference that is one special value, or return None if the reference is none.

    `reference` and `answer` may have LaTeX. The outcome is CONTRADICTED if the answer has another value of the kind.
    """
    bare = _bare(reference)
    question = question[-_MAX_QUESTION:]
    if bare is None or not (_may_be_special(bare) or _asks_for_coordinates(question)):
        return None
    said = _plain_answer(answer[:_MAX_ANSWER])
    for compare in (
        _truth,
        _verse,
        _version,
        _roman,
        _ratio,
        _named,
        _coordinates,
        _coded,
        _zero,
        _unit,
        _compound,
        _symbol,
    ):
        if (found := compare(question, bare, said)) is not None:
            return found
    return None


def may_be_special(question: str, reference: str) -> bool:
    """Return False if `compare_special` returns None for a reference, whatever the answer is: a fast first look."""
    bare = _bare(reference)
    return bare is not None and (_may_be_special(bare) or _asks_for_coordinates(question[-_MAX_QUESTION:]))


def _bare(reference: str) -> str | None:
    """Return a short reference in plain form, without signs around it; None for a long one or one without others."""
    bare = plain(reference[: 4 * _MAX_REFERENCE]).strip(_AROUND)
    return bare if bare and len(bare) <= _MAX_REFERENCE else None


def _may_be_special(reference: str) -> bool:
    """Return True unless a plain reference is surely none of these values, except for coordinates in words."""
    return (
        not DIGITS.isdisjoint(reference)
        or len(reference) <= _LONGEST_SYMBOL
        or _SMALL.search(reference) is not None
        or roman_value(reference) is not None
        or reference.casefold() in _TRUTH
        or _unit_of(reference) is not None
        or reference in _COMPOUNDS
    )


@lru_cache(maxsize=64)
def _asks_for_coordinates(question: str) -> bool:
    return _ASKS_FOR_COORDINATES.search(question) is not None and _OF_POINT.search(question) is None


_plain_answer = lru_cache(maxsize=16)(plain)
"""A cache, because an answer is compared with many references one after another."""


def _truth(question: str, reference: str, answer: str) -> Compared | None:
    del question
    wanted = _TRUTH.get(reference.casefold())
    if wanted is None:
        return None
    said = _verdict(answer.casefold())
    if said is None:
        return Kind.VERDICT, Outcome.MISSING
    return Kind.VERDICT, Outcome.FOUND if said is wanted else Outcome.CONTRADICTED


def _verdict(answer: str) -> bool | None:
    """Return the verdict of an answer's first sentence with a verdict; None without such a sentence, or for both."""
    end = _CLAUSE_END if _CHINESE.search(answer) is not None else _SENTENCE_END
    for sentence in end.split(answer):
        verdicts = {
            _TRUTH[found[0]] is (_DENIED.search(sentence[: found.start()]) is None)
            for found in _TRUTH_WORD.finditer(sentence)
        }
        if verdicts:
            return verdicts.pop() if len(verdicts) == 1 else None
    return None


def _ratio(question: str, reference: str, answer: str) -> Compared | None:
    score = _ASKS_FOR_SCORE.search(question) is not None
    if not score and _ASKS_FOR_RATIO.search(question) is None and not (":" in reference and _OF_PARTS.search(answer)):
        return None
    listed = [_RATIO.fullmatch(part.strip()) for part in _in_digits(reference).split(",")]
    wanted = [_parts(found, score=score) for found in listed if found is not None]
    if not wanted or len(wanted) < len(listed):
        return None
    said = _in_digits(answer)
    pairs = [_parts(each, score=score) for each in _RATIO.finditer(said)]
    if not pairs and len(wanted) == 1 and len(numbers := _NUMBERS.findall(said)) == len(wanted[0]):
        pairs = [_proportions(list(map(Fraction, numbers)), score=score)]  # "4 parts flour and 2 parts sugar"
    if any(pairs[start : start + len(wanted)] == wanted for start in range(len(pairs))):
        return Kind.RATIO, Outcome.FOUND
    if not score and len(wanted[0]) == 2 and not pairs:
        return None  # the answer may have the quotient
    return Kind.RATIO, Outcome.CONTRADICTED if pairs else Outcome.MISSING


def _in_digits(text: str) -> str:
    return _SMALL.sub(lambda word: _IN_WORDS[word[0].lower()], text)


def _parts(found: re.Match[str], *, score: bool) -> tuple[Fraction, ...]:
    return _proportions([Fraction(found[1]), *map(Fraction, _NUMBERS.findall(found[2]))], score=score)


def _proportions(numbers: list[Fraction], *, score: bool) -> tuple[Fraction, ...]:
    if score or not numbers[0]:
        return tuple(numbers)
    return tuple(number / numbers[0] for number in numbers)


def _named(question: str, reference: str, answer: str) -> Compared | None:
    """Compare two or more named numbers: "6 pencils, 4 pens", "p = 4, q = 2".

    The outcome is CONTRADICTED if the answer gives one name another's number, and FOUND if it has nothing but the
    numbers in order.
    """
    del question
    parts = _PARTS.split(reference)
    if len(parts) < 2:
        return None
    first = [_LABEL_FIRST.fullmatch(part) for part in parts]
    last = [_LABEL_LAST.fullmatch(part) for part in parts]
    wanted = {found[1].casefold(): float(found[2]) for found in first if found} or {
        found[2].casefold(): float(found[1]) for found in last if found
    }
    if len(wanted) < 2 or len(wanted) < len(parts) or len(set(wanted.values())) < len(wanted):
        return None
    lower = answer.casefold()
    said = {label: number for label in wanted if (number := _number_of(label, lower)) is not None}
    if not said and _LONG_WORD.search(answer) is None:
        numbers = [float(number) for number in _SIGNED.findall(answer)]
        if len(numbers) == len(wanted):
            same = numbers == list(wanted.values())
            return Kind.LIST, Outcome.FOUND if same else Outcome.CONTRADICTED
    swapped = [label for label, number in said.items() if number != wanted[label] and number in wanted.values()]
    return (Kind.LIST, Outcome.CONTRADICTED) if len(swapped) > 1 else None


def _number_of(label: str, answer: str) -> float | None:
    """Return the number next to a name, or None if no number is there."""
    name = re.escape(label)
    behind = re.search(rf"(?<!\w){name}\w?\s*(?:\||=|:|is|was|of|are)?\s*(-?\d+(?:\.\d+)?)(?!\s?{name})", answer)
    before = re.search(rf"(-?\d+(?:\.\d+)?)\s+(?:\w+\s)?{name}(?!\w\w)", answer)
    found = before or behind
    return None if found is None else float(found[1])


def _coordinates(question: str, reference: str, answer: str) -> Compared | None:
    """Compare a pair of coordinates in their order."""
    if not _asks_for_coordinates(question):
        return None
    wanted, said = (
        [value.content for value in values_of(text) if isinstance(value.content, Quantity)]
        for text in (reference, answer)
    )
    if len(wanted) != 2 or len(said) < 2:
        return None
    same = all(ours.equals(theirs) for ours, theirs in zip(said[-2:], wanted, strict=True))
    return Kind.LIST, Outcome.FOUND if same else Outcome.CONTRADICTED


def _verse(question: str, reference: str, answer: str) -> Compared | None:
    """Compare chapter and verse, whatever separates them."""
    wanted = _VERSE.search(reference)
    if wanted is None or _ASKS_FOR_VERSE.search(question) is None:
        return None
    said = [(found[1], found[2]) for found in _VERSE.finditer(answer)]
    if not said and len(numbers := _DIGITS.findall(answer)) == 2:
        said = [(numbers[0], numbers[1])]
    if (wanted[1], wanted[2]) in said:
        return Kind.SYMBOL, Outcome.FOUND
    return Kind.SYMBOL, Outcome.CONTRADICTED if said else Outcome.MISSING


def _version(question: str, reference: str, answer: str) -> Compared | None:
    """Compare versions part by part; a last part of 0 may be missing."""
    wanted = _VERSION.search(reference)
    if wanted is None or _ASKS_FOR_VERSION.search(question) is None:
        return None
    said = [_without_zeros(each) for each in _VERSION.findall(answer)]
    if _without_zeros(wanted[0]) in said:
        return Kind.SYMBOL, Outcome.FOUND
    return Kind.SYMBOL, Outcome.CONTRADICTED if said else Outcome.MISSING


def _without_zeros(version: str) -> str:
    parts = version.split(".")
    while len(parts) > 2 and parts[-1] == "0":
        parts.pop()
    return ".".join(parts)


def _roman(question: str, reference: str, answer: str) -> Compared | None:
    """Compare Roman numerals where the question asks for one; elsewhere a numeral may be written as a number."""
    value = roman_value(reference)
    if value is None:
        return None
    if _ASKS_FOR_ROMAN.search(question) is None:
        said_so = len(reference) > 1 and (reference in _LATIN.findall(answer) or str(value) in _DIGITS.findall(answer))
        return (Kind.ORDINAL, Outcome.FOUND) if said_so else None
    said = [word for word in _LATIN.findall(answer) if roman_value(word) is not None]
    if reference in said[-1:]:
        return Kind.SYMBOL, Outcome.FOUND
    return Kind.SYMBOL, Outcome.CONTRADICTED if said else Outcome.MISSING


def _coded(question: str, reference: str, answer: str) -> Compared | None:
    """Compare a code that begins with a zero digit by digit, unless the question asks for an amount."""
    if _CODE.fullmatch(reference) is None or _ASKS_FOR_CODE.search(question) is None:
        return None
    numbers = _DIGITS.findall(answer)
    if reference in numbers:
        return Kind.SYMBOL, Outcome.FOUND
    return (Kind.SYMBOL, Outcome.CONTRADICTED) if reference.lstrip("0") in numbers else None


def _zero(question: str, reference: str, answer: str) -> Compared | None:
    del question
    if reference != "0" or any(map(str.isdigit, answer)) or _NOTHING.search(answer) is None:
        return None
    return Kind.QUANTITY, Outcome.FOUND


def _unit(question: str, reference: str, answer: str) -> Compared | None:
    """Compare units without a number: "MW" and "megawatts"."""
    wanted = _unit_of(reference)
    if wanted is None or _ASKS_FOR_UNIT.search(question) is None:
        return None
    words = [token.text for token in tokens_of(answer) if token.word]
    units = [unit for word in words if (unit := _unit_of(word)) is not None]
    if wanted in units:
        return Kind.SYMBOL, Outcome.FOUND
    another = bool(units) or any(word.casefold() == reference.casefold() for word in words)
    return Kind.SYMBOL, Outcome.CONTRADICTED if another else Outcome.MISSING


def _unit_of(word: str) -> Unit | None:
    return SYMBOLS.get(word) or (NAMES.get(word.lower()) if len(word) > 2 else None)


def _compound(question: str, reference: str, answer: str) -> Compared | None:
    names = _COMPOUNDS.get(reference)
    if names is None or _ASKS_FOR_FORMULA.search(question) or reference in answer:
        return None
    return (Kind.SYMBOL, Outcome.FOUND) if re.search(names, answer, re.IGNORECASE) else None


def _symbol(question: str, reference: str, answer: str) -> Compared | None:
    symbol = Identifier.of(reference, question) if _SYMBOL.fullmatch(reference) else None
    found = symbol.found_in(answer) if symbol is not None and symbol.kind == "symbol" else None
    return None if found is None else (Kind.SYMBOL, Outcome.FOUND if found else Outcome.CONTRADICTED)
