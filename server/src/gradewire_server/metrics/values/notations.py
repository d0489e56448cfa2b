"""Rewrite notations that depend on a question's language or subject, so that values can be read from them.

German, French and Spanish texts separate decimals with a comma, accounts put negative amounts in parentheses, and
Chinese texts have numerals of their own.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

from gradewire_proto.final_answer.words import expression
from gradewire_server.metrics.values.chinese import without_chinese_numerals
from gradewire_server.metrics.values.tokens import VOCABULARY, roman_value

_WORDS: Final = VOCABULARY["notations"]
_MAX_QUESTION: Final = 2_048
_MAX_CHARACTERS: Final = 16_384
_WORD: Final = re.compile(r"[^\W\d_]+")
_COMMA_LANGUAGES: Final = frozenset(_WORDS["comma_languages"].split())
_POINT_LANGUAGE: Final = frozenset(_WORDS["point_language"].split())

_GROUPED_BY_POINTS: Final = re.compile(r"(?<![\w.,])(\d{1,3}(?:\.\d{3})+)(?:,(\d+))?(?![\d]|[.,]\d)")
_DECIMAL_COMMA: Final = re.compile(r"(?<![\w.,])(\d+),(\d+)(?![\d]|[.,]\d)")
_TWO_SEPARATORS: Final = re.compile(r"(?<![\w.,])(\d{1,3}(?:\.\d{3})+),(\d{1,2})(?![\d]|[.,]\d)")
_COMMA_BEFORE_UNIT: Final = re.compile(
    r"(?<![\w.,])(\d{1,6}),(\d{1,2})(?=\s?(?:kg|g|mg|t|km|m|cm|mm|l|ml|L|mL|h|%|\u00b0C)(?![\w/]))"
)
_BARE_POINT: Final = re.compile(r"(?<![\w.])\.(?=\d+(?![\w.]))")
_GROUPED_BY_BLANKS: Final = re.compile(r"(?<![\w.,])(\d{1,3}(?:[ \u00a0\u202f]\d{3})+),(\d+)(?!\d|[.,]\d)")
_LATEX_COMMA: Final = re.compile(r"(?<=\d)\{,\}(?=\d)")
_DAY_FIRST: Final = re.compile(r"(?<![\d/])(0?[1-9]|[12]\d|3[01])/(0?[1-9]|1[0-2])/([12]\d{3})(?![\d/])")
_SMALL: Final = {word: str(value) for word, value in _WORDS["ambiguous_numbers"].items()}
_SMALL_NUMBER: Final = re.compile(rf"(?<!-){expression(_SMALL)}(?!-)", re.IGNORECASE)
_ORDINALS: Final = {word: place for place, words in enumerate(_WORDS["ordinals"], 1) for word in words.split()}
_ORDINAL: Final = re.compile(
    rf"(?<!un )(?<!deux )(?<!trois )(?<!quatre )(?<!dos )(?<!tres )(?<!\d ){expression(_ORDINALS)}", re.IGNORECASE
)
_FRENCH_ORDINAL: Final = re.compile(r"(?<![\w.,])(\d{1,3})(?:e|er|\u00e8re|re|\u00e8me|eme)\b")

_ACCOUNTS: Final = re.compile(expression(_WORDS["accounts"]), re.IGNORECASE)
_IN_PARENTHESES: Final = re.compile(
    r"(^\W{0,3}|\b(?:was|is|of|at|shows?|reports?)\s|[:=|]\s?)([$\u20ac\u00a3]?)\(([$\u20ac\u00a3]?)\s?(\d[\d.,]*)((?:\s(?:thousand|million|billion|k|m|bn))?)\)"
)

_GERMAN_HOURS: Final = {word: hour for hour, word in enumerate(_WORDS["german_hours"].split(), 1)}
_GERMAN_HALF: Final = re.compile(
    rf"\bhalb ({'|'.join(_GERMAN_HOURS)})\b(?:\s({'|'.join(_WORDS['german_halves_of_day'])})\b)?"
)
_CLOCK: Final = re.compile(r"(?<![\d.,:])([01]?\d|2[0-4])[.:h]([0-5]\d)\s?(?:Uhr|heures?\b|h\b)")
_GERMAN_HOUR: Final = re.compile(
    rf"(?<![\d.,:])([01]?\d|2[0-4])\s?Uhr(?:\s([0-5]\d)\b)?(?:\s({'|'.join(_WORDS['german_halves_of_day'])})\b)?"
)
_ASKS_FOR_TIME: Final = re.compile(expression(_WORDS["time_asked"]), re.IGNORECASE)
_FRENCH_HOUR: Final = re.compile(r"(?<![\d.,:])([01]?\d|2[0-4])\s?(?:h|heures?)\s?([0-5]\d)?(?![\w])")

_ASKS_FOR_DURATION: Final = re.compile(expression(_WORDS["duration_asked"]), re.IGNORECASE)
_CLOCK_DURATION: Final = re.compile(r"(?<![\d.,:])(\d{1,3}):([0-5]\d):([0-5]\d)(?![\d:])")
_HOURS_AND_MINUTES: Final = re.compile(r"(?<![\d.,:])(\d{1,3})\s?h\s?([0-5]\d)(?!\d)")
_AND_A_HALF: Final = re.compile(r"\b(une?|\d{1,3})\s(heures?|jours?|ans?|mois|semaines?)\set\sdemie?\b", re.IGNORECASE)

_ERAS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(rf"(\d{{1,4}})\s?(?:{'|'.join(patterns)})"), rf"\1 {era}") for era, patterns in _WORDS["eras"].items()
)
_CENTURY: Final = re.compile(
    r"\b(?:siglo\s(\d{1,2}|[IVX]{1,6})\b|(\d{1,2}|[IVX]{1,6})e\ssi\u00e8cle|(\d{1,2})\.\sJahrhundert)"
)

_COUNTS_IN_CHINESE: Final = re.compile(r"[\u591a\u51e0][\u5c11\u4e2a\u5f20\u53ea\u4eba\u672c\u6761]")
_CHINESE_ONE: Final = re.compile(rf"\u4e00(?=[{_WORDS['measure_words']}])")
"""An article unless the question asks how many."""
_CHINESE: Final = re.compile(r"[\u4e00-\u9fff]")
_ARC: Final = re.compile(
    r"(\d{1,3})\s?\u00b0\s?(\d{1,2}(?:\.\d+)?)\s?[\u2032\u2019']\s?(?:(\d{1,2}(?:\.\d+)?)\s?(?:[\u2033\u201d\"]|''))?"
)
_GERMAN_DIRECTION: Final = re.compile(
    r"(n\u00f6rdliche|s\u00fcdliche|\u00f6stliche|westliche)[rn]? (?:Breite|L\u00e4nge)"
)
_DIRECTIONS: Final = {"n\u00f6rdliche": "N", "s\u00fcdliche": "S", "\u00f6stliche": "E", "westliche": "W"}
_WITHOUT_DEGREE: Final = re.compile(r"(\d(?:\.\d+)?)\s?([NSEW])\b")
_ASKS_FOR_COORDINATES: Final = re.compile(expression(VOCABULARY["special"]["coordinates"]), re.IGNORECASE)

_Rewriting: TypeAlias = Callable[[str], str]


def rewritten(question: str, text: str) -> str:
    """Return a reference or an answer with the notations of the question's language and subject rewritten.

    For example, "1.234,56" becomes "1234.56" if the question is in German, and "(250)" becomes "-250" if it asks for a
    profit. Texts without such notations are returned unchanged. Only the first 16,384 characters are rewritten.
    """
    if len(text) > _MAX_CHARACTERS:
        return rewritten(question, text[:_MAX_CHARACTERS]) + text[_MAX_CHARACTERS:]
    if not text.isascii():
        text = _of_any_language(text)
    for rewrite in _rewritings(question):
        text = rewrite(text)
    return text


def _of_any_language(text: str) -> str:
    if "\u00b0" in text:
        text = _GERMAN_DIRECTION.sub(lambda found: _DIRECTIONS[found[1]], _ARC.sub(_decimal_degrees, text))
    return without_chinese_numerals(text) if _CHINESE.search(text) is not None else text


@lru_cache(maxsize=128)
def _rewritings(question: str) -> tuple[_Rewriting, ...]:
    """Return the functions that rewrite texts of a question's language and subject."""
    question = question[-_MAX_QUESTION:]
    found: list[_Rewriting] = [_with_points]
    if has_decimal_comma(question):
        found.append(_of_comma_language)
    if _COUNTS_IN_CHINESE.search(question):
        found.append(lambda text: _CHINESE_ONE.sub("1", text))
    if _ACCOUNTS.search(question):
        found.append(lambda text: _IN_PARENTHESES.sub(r"\1-\2\3\4\5", text))
    if _ASKS_FOR_TIME.search(question):
        found.append(lambda text: _FRENCH_HOUR.sub(lambda time: f"{time[1]}:{time[2] or '00'}", text))
    if _ASKS_FOR_DURATION.search(question):
        found.append(_of_duration)
    if _ASKS_FOR_COORDINATES.search(question):
        found.append(lambda text: _WITHOUT_DEGREE.sub("\\1\u00b0 \\2", text))
    return tuple(found)


@lru_cache(maxsize=128)
def has_decimal_comma(question: str) -> bool:
    """Return True if a question is in German, French or Spanish, which write "3,75" for 3.75 and "12.500" for 12500."""
    words = _WORD.findall(question[-_MAX_QUESTION:].casefold())
    foreign = sum(word in _COMMA_LANGUAGES for word in words)
    return foreign > sum(word in _POINT_LANGUAGE for word in words)


def _with_points(text: str) -> str:
    """Rewrite a number whose two separators show its decimals, in any language."""
    if "." in text:
        text = _BARE_POINT.sub("0.", text)
    if "," not in text:
        return text
    text = _COMMA_BEFORE_UNIT.sub(r"\1.\2", text)
    return _TWO_SEPARATORS.sub(lambda number: f"{number[1].replace('.', '')}.{number[2]}", text)


def _of_comma_language(text: str) -> str:
    text = _LATEX_COMMA.sub(",", text)
    text = _CLOCK.sub(r"\1:\2", text)
    text = _GERMAN_HOUR.sub(_german_hour, text)
    text = _GERMAN_HALF.sub(_half_hour, text)
    text = _DAY_FIRST.sub(r"\3-\2-\1", text)
    for pattern, era in _ERAS:
        text = pattern.sub(era, text)
    text = _CENTURY.sub(_century, text)
    text = _GROUPED_BY_POINTS.sub(_without_points, text)
    text = _GROUPED_BY_BLANKS.sub(lambda number: f"{''.join(number[1].split())}.{number[2]}", text)
    text = _DECIMAL_COMMA.sub(r"\1.\2", text)
    text = _AND_A_HALF.sub(_and_a_half, text)
    text = _ORDINAL.sub(lambda word: _in_english(_ORDINALS[word[0].lower()]), text)
    text = _FRENCH_ORDINAL.sub(lambda number: _in_english(int(number[1])), text)
    return _SMALL_NUMBER.sub(lambda word: _SMALL[word[0].lower()], text)


def _of_duration(text: str) -> str:
    return _CLOCK_DURATION.sub(r"\1 h \2 min \3 s", _HOURS_AND_MINUTES.sub(r"\1 h \2 min", text))


def _and_a_half(duration: re.Match[str]) -> str:
    number = 1 if duration[1][0] in "uU" else int(duration[1])
    return f"{number}.5 {duration[2].rstrip('s')}s"


def _in_english(place: int) -> str:
    ending = "th" if place % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _century(found: re.Match[str]) -> str:
    said = found[1] or found[2] or found[3]
    number = int(said) if said.isdecimal() else roman_value(said)
    return f"{_in_english(number)} century" if number else found[0]


def _without_points(number: re.Match[str]) -> str:
    whole = number[1].replace(".", "")
    return whole if number[2] is None else f"{whole}.{number[2]}"


def _decimal_degrees(angle: re.Match[str]) -> str:
    degrees = int(angle[1]) + float(angle[2]) / 60 + float(angle[3] or 0) / 3600
    return f"{degrees:.6f}".rstrip("0").rstrip(".") + "\u00b0 "


def _german_hour(time: re.Match[str]) -> str:
    half = _WORDS["german_halves_of_day"].get(time[3] or "", "") if int(time[1]) <= 12 else ""
    return f"{time[1]}:{time[2] or '00'} {half}".rstrip()


def _half_hour(time: re.Match[str]) -> str:
    hour = (_GERMAN_HOURS[time[1]] - 1) % 12
    half = _WORDS["german_halves_of_day"].get(time[2] or "", "")
    return f"{hour or 12}:30 {half}".rstrip()
