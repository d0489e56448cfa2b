"""Quantities among tokens: number and unit, with what is said around them ("about", "at least", "a loss of")."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gradewire_server.metrics.text.values.amounts.quantities import Quantity
from gradewire_server.metrics.text.values.amounts.unit_reading import UnitFound, unit_at
from gradewire_server.metrics.text.values.amounts.units import CURRENCIES, CURRENCY_SIGNS, FOOT, INCH, PERCENT
from gradewire_server.metrics.text.values.writing.number_words import SHORT_SCALES
from gradewire_server.metrics.text.values.writing.numerals import Numeral, adjacent, lower_at, numeral_at, tokens_are
from gradewire_server.metrics.text.values.writing.tokens import Token

_HEDGES: Final = frozenset({
    "about", "approximately", "approx", "around", "roughly", "nearly", "almost", "some", "circa", "ca", "~", "c",
    "estimated", "close",
})  # fmt: skip
_BEFORE: Final = {
    ("more", "than"): ">", ("greater", "than"): ">", ("over",): ">", ("above",): ">", ("exceeding",): ">",
    ("less", "than"): "<", ("fewer", "than"): "<", ("under",): "<", ("below",): "<", ("lower", "than"): "<",
    ("at", "least"): ">=", ("minimum", "of"): ">=", ("no", "less", "than"): ">=", ("no", "fewer", "than"): ">=",
    ("at", "most"): "<=", ("maximum", "of"): "<=", ("no", "more", "than"): "<=", ("up", "to"): "<=",
    ("not", "more", "than"): "<=", ("not", "less", "than"): ">=", (">",): ">",
    ("<",): "<", (">=",): ">=", ("<=",): "<=",
}  # fmt: skip
_BEHIND: Final = {
    "more": ">=", "older": ">=", "above": ">=", "greater": ">=", "higher": ">=", "over": ">=", "up": ">=",
    "less": "<=", "fewer": "<=", "younger": "<=", "below": "<=", "under": "<=", "lower": "<=",
}  # fmt: skip
_FALLS: Final = frozenset({
    "loss", "decrease", "decline", "drop", "fall", "reduction", "dropped", "fell", "declined", "decreased", "lost",
    "reduced", "down", "deficit", "losses",
})  # fmt: skip
_RISES: Final = frozenset({
    "increase", "rise", "gain", "growth", "rose", "grew", "increased", "gained", "climbed", "up", "raised",
})  # fmt: skip
_LINKS: Final = frozenset({"of", "by", "in", "was", "is"})
_COMPOUND: Final = frozenset({"and", ","})
_MAX_LINKS: Final = 3


def quantity_at(tokens: Sequence[Token], at: int) -> tuple[Quantity, int, int] | None:
    """The quantity whose number begins at a token, with indices of its first token and the one behind it."""
    clock = _hour_and_a_half(tokens, at) or _feet_and_inches(tokens, at)
    if clock is not None:
        return clock[0], at, clock[1]
    # A power that is too high for a number is none without its base either.
    numeral = None if lower_at(tokens, at - 1) == "^" else numeral_at(tokens, at)
    if numeral is None:
        return None
    first, currency = _currency_before(tokens, at)
    quantity, end = _with_unit(tokens, numeral, currency)
    quantity, end = _compound(tokens, quantity, end)
    if not _moved(tokens, quantity, first, end):
        quantity, end = _range(tokens, quantity, end, currency)
    return _in_context(tokens, quantity, first, end)


def _with_unit(tokens: Sequence[Token], numeral: Numeral, currency: UnitFound | None) -> tuple[Quantity, int]:
    value, place, end = numeral.value, numeral.place, numeral.end
    found = currency
    if currency is not None:
        factor = SHORT_SCALES.get(lower_at(tokens, end), 1.0)
        value, place, end = value * factor, place * factor, end + (factor > 1)
    elif (found := unit_at(tokens, end)) is not None:
        value *= found.sign
        end = found.end
    return (
        Quantity(
            value,
            place,
            found.unit if found else None,
            found.name if found else "",
            signed=bool(found and found.sign < 0),
            fraction=numeral.fraction,
        ),
        end,
    )


def _currency_before(tokens: Sequence[Token], at: int) -> tuple[int, UnitFound | None]:
    """The index from which an amount of money counts, and its currency, where one stands before the number."""
    before = at - 1
    before -= lower_at(tokens, before) == "-" and lower_at(tokens, before - 1) in CURRENCY_SIGNS  # "$-5"
    bracket = lower_at(tokens, before) == "("
    before -= bracket
    lower = lower_at(tokens, before)
    unit = CURRENCY_SIGNS.get(lower) or (CURRENCIES.get(lower) if lower in {"usd", "eur", "gbp", "rs", "inr"} else None)
    if unit is None:
        return at, None
    before -= lower == "$" and lower_at(tokens, before - 1) == "us"
    return before, UnitFound(unit, lower, at)


def _compound(tokens: Sequence[Token], quantity: Quantity, end: int) -> tuple[Quantity, int]:
    """As in "2 h 15 min", "5 feet, 11 inches": the same dimension again, in a smaller unit."""
    while (
        quantity.unit is not None and quantity.unit.dimension and not quantity.unit.offset and quantity.value % 1 == 0
    ):
        start = end + (lower_at(tokens, end) in _COMPOUND)
        if start >= len(tokens):
            break
        numeral = numeral_at(tokens, start)
        found = None if numeral is None else unit_at(tokens, numeral.end)
        if numeral is not None and found is None and lower_at(tokens, numeral.end) == "in":  # "6ft 1in"
            found = UnitFound(INCH, "in", numeral.end + 1)
        if numeral is None or found is None or found.unit.dimension != quantity.unit.dimension:
            break
        share = found.unit.factor / quantity.unit.factor
        if share >= 1 or numeral.value * share >= 1:
            break
        quantity = replace(quantity, value=quantity.value + numeral.value * share, place=numeral.place * share)
        end = found.end
    return quantity, end


def _range(tokens: Sequence[Token], quantity: Quantity, end: int, currency: UnitFound | None) -> tuple[Quantity, int]:
    """As in "10-12 metres", "between 10 and 12", "3:2": two numbers that belong together."""
    link = lower_at(tokens, end)
    if link not in {"-", "to", ":"} and not (link == "and" and _has_before(tokens, end, "between")):
        return quantity, end
    start = end + 1 + (lower_at(tokens, end + 1) in CURRENCY_SIGNS)
    numeral = numeral_at(tokens, start) if start < len(tokens) else None
    if numeral is None:
        return quantity, end
    other, behind = _with_unit(tokens, numeral, currency)
    joined = _joined(quantity, other, link)
    return (quantity, end) if joined is None else (joined, behind)


def _moved(tokens: Sequence[Token], quantity: Quantity, first: int, end: int) -> bool:
    """Whether two amounts are a change and what it comes to: "by 1.7% to 19.1%", "rose $5 to $9"."""
    if lower_at(tokens, end) != "to" or quantity.unit is None:
        return False
    before = lower_at(tokens, first - 1 - (lower_at(tokens, first - 1) in _HEDGES))
    return before == "by" or before in _FALLS or before in _RISES


def _joined(quantity: Quantity, other: Quantity, link: str) -> Quantity | None:
    """A range or a ratio of two quantities; None where they are two."""
    unit = quantity.unit or other.unit
    falls = other.value <= quantity.value
    if unit is None and (link == ":" or (link == "to" and falls)):
        return Quantity(quantity.value, 0.0, ratio=(quantity.value, other.value))
    if link == ":" or (other.unit is not None and unit is not None and other.dimension != unit.dimension):
        return None
    factor = other.unit.factor / unit.factor if other.unit is not None and unit is not None else 1.0
    upper = other.value * factor
    if upper <= quantity.value:
        return None
    return replace(quantity, unit=unit, unit_name=quantity.unit_name or other.unit_name, upper=upper)


def _has_before(tokens: Sequence[Token], end: int, word: str) -> bool:
    return any(lower_at(tokens, index) == word for index in range(max(0, end - 6), end))


def _hour_and_a_half(tokens: Sequence[Token], at: int) -> tuple[Quantity, int] | None:
    """As in "An hour and a half"."""
    if lower_at(tokens, at) not in {"a", "an", "one"}:
        return None
    found = unit_at(tokens, at + 1)
    if found is None or not tokens_are(tokens, found.end, "and", "a", "half"):
        return None
    return Quantity(1.5, 0.1, found.unit, found.name), found.end + 3


def _feet_and_inches(tokens: Sequence[Token], at: int) -> tuple[Quantity, int] | None:
    """Feet and inches by their marks."""
    feet = tokens[at].whole
    if feet is None or lower_at(tokens, at + 1) != "'" or at + 2 >= len(tokens):
        return None
    inches = tokens[at + 2].whole
    if inches is None or inches >= 12 or lower_at(tokens, at + 3) not in {'"', "'"}:
        return None
    value = feet + inches * INCH.factor / FOOT.factor
    return Quantity(value, INCH.factor / FOOT.factor, FOOT, "foot"), at + 4


def _in_context(tokens: Sequence[Token], quantity: Quantity, first: int, end: int) -> tuple[Quantity, int, int]:
    """The quantity with sign, hedge, bound and direction from the words around it."""
    start, sign = _sign_before(tokens, first)
    if lower_at(tokens, first) in CURRENCY_SIGNS and lower_at(tokens, first + 1) == "-":
        sign = -1
    bracketed = lower_at(tokens, end) == ")" and quantity.family == "money" and _opened(tokens, first)
    end += bracketed
    if lower_at(tokens, end) == ")" and lower_at(tokens, end + 1) == "%" and lower_at(tokens, first - 1) == "(":
        bracketed, end = True, end + 2  # "(2.5)%"
        quantity = replace(quantity, unit=PERCENT, unit_name="%")
    below_zero = tokens_are(tokens, end, "below", "zero")
    end += 2 * below_zero
    scale, behind = _scale_behind(tokens, end) if bracketed else (1.0, end)
    value = quantity.value * scale
    if sign < 0 or bracketed or below_zero:
        value = -abs(value)
    end = behind
    bound, start = _bound_before(tokens, start)
    hedged = lower_at(tokens, start - 1) in _HEDGES or (lower_at(tokens, start - 2) in _HEDGES and bool(bound))
    bound = bound or _bound_behind(tokens, end)
    return (
        replace(
            quantity,
            value=value,
            place=quantity.place * scale,
            hedged=hedged,
            bound=bound,
            direction=_direction(tokens, start - hedged, end),
            signed=quantity.signed or sign != 0 or bracketed or below_zero,
        ),
        start,
        end,
    )


def _scale_behind(tokens: Sequence[Token], at: int) -> tuple[float, int]:
    from_words = {"million": 1e6, "billion": 1e9, "thousand": 1e3}.get(lower_at(tokens, at))
    return (1.0, at) if from_words is None else (from_words, at + 1)


def _opened(tokens: Sequence[Token], first: int) -> bool:
    return lower_at(tokens, first) == "(" or lower_at(tokens, first + 1) == "(" or lower_at(tokens, first - 1) == "("


def _sign_before(tokens: Sequence[Token], first: int) -> tuple[int, int]:
    before = lower_at(tokens, first - 1)
    if before in {"minus", "negative"}:
        return first - 1, -1
    if before in {"-", "+"} and adjacent(tokens, first) and not adjacent(tokens, first - 1):
        return first - 1, -1 if before == "-" else 1
    if before in {"-", "+"} and adjacent(tokens, first) and lower_at(tokens, first - 2) in {"(", "=", "[", ","}:
        return first - 1, -1 if before == "-" else 1
    return first, 0


def _bound_before(tokens: Sequence[Token], start: int) -> tuple[str, int]:
    for length in (3, 2, 1):
        words = tuple(lower_at(tokens, index) for index in range(start - length, start))
        if words in _BEFORE:
            return _BEFORE[words], start - length
    return "", start


def _bound_behind(tokens: Sequence[Token], end: int) -> str:
    if lower_at(tokens, end) == "+" and adjacent(tokens, end):
        return ">="
    for link in (end, end + 1, end + 2):  # "18 years or more"
        if lower_at(tokens, link) in {"or", "and"}:
            return _BEHIND.get(lower_at(tokens, link + 1), "")
        if link >= len(tokens) or not tokens[link].word:
            break
    return ""


def _direction(tokens: Sequence[Token], start: int, end: int) -> int:
    at = start - 1
    links = 0
    while lower_at(tokens, at) in _LINKS and links < _MAX_LINKS:
        at, links = at - 1, links + 1
    word = lower_at(tokens, at)
    if word in _FALLS:
        return -1
    if word in _RISES or lower_at(tokens, end) in {"more", "higher", "increase"}:
        return 1
    return -1 if lower_at(tokens, end) in {"decrease", "decline", "less", "drop"} else 0
