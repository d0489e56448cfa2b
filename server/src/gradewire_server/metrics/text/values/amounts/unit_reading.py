"""Units at a place among tokens: "km/h", "square miles", "degrees Celsius", "m^2"."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gradewire_server.metrics.text.values.amounts.units import (
    CELSIUS,
    CURRENCIES,
    CURRENCY_SIGNS,
    DEGREE,
    FAHRENHEIT,
    KELVIN,
    NAMES,
    PERCENT,
    PREFIXES,
    SYMBOLS,
    Unit,
)
from gradewire_server.metrics.text.values.writing.numerals import adjacent, lower_at, number_at, tokens_are
from gradewire_server.metrics.text.values.writing.tokens import Token

_POWERS_BEHIND: Final = {"squared": 2, "cubed": 3}
_POWERS: Final = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_SCALES_OF_TEMPERATURE: Final = {
    "c": CELSIUS, "celsius": CELSIUS, "centigrade": CELSIUS, "f": FAHRENHEIT, "fahrenheit": FAHRENHEIT, "k": KELVIN,
    "kelvin": KELVIN,
}  # fmt: skip
_DEGREES: Final = frozenset({"\u00b0", "degree", "degrees", "deg"})
_DIRECTIONS: Final = {"n": 1, "north": 1, "e": 1, "east": 1, "s": -1, "south": -1, "w": -1, "west": -1}
_SHARES: Final = frozenset({"%", "percent", "percentage", "per", "\u2030", "basis"})
_MAX_POWER: Final = 9


@dataclass(frozen=True, slots=True)
class UnitFound:
    """A unit among tokens.

    Attributes:
        unit: The unit.
        name: Its last word as written, in small letters.
        end: Index of the token behind it.
        sign: -1 for degrees south and west.
    """

    unit: Unit
    name: str
    end: int
    sign: int = 1


def unit_at(tokens: Sequence[Token], at: int) -> UnitFound | None:
    """The unit that begins at a token behind a number, None where none does."""
    lower = lower_at(tokens, at)
    if lower == "-" and adjacent(tokens, at) and adjacent(tokens, at + 1):  # "a 5-km race"
        at += 1
        lower = lower_at(tokens, at)
    if not lower:
        return None
    return _share(tokens, at) or _degrees(tokens, at) or _currency(tokens, at) or _measure(tokens, at)


def _share(tokens: Sequence[Token], at: int) -> UnitFound | None:
    if lower_at(tokens, at) not in _SHARES:
        return None
    for words, factor in (
        (("%",), 0.01),
        (("percent",), 0.01),
        (("percentage", "points"), 0.01),
        (("percentage", "point"), 0.01),
        (("per", "cent"), 0.01),
        (("per", "mille"), 0.001),
        (("\u2030",), 0.001),
        (("basis", "points"), 0.0001),
    ):
        if tokens_are(tokens, at, *words):
            return UnitFound(PERCENT if factor == 0.01 else Unit((), factor), words[-1], at + len(words))
    return None


def _degrees(tokens: Sequence[Token], at: int) -> UnitFound | None:
    if lower_at(tokens, at) not in _DEGREES:
        return None
    following = lower_at(tokens, at + 1)
    if following in _SCALES_OF_TEMPERATURE:
        return UnitFound(_SCALES_OF_TEMPERATURE[following], following, at + 2)
    if following in _DIRECTIONS:
        axis = "latitude" if following in {"n", "s", "north", "south"} else "longitude"
        return UnitFound(Unit(((axis, 1),), 1.0), following, at + 2, _DIRECTIONS[following])
    return UnitFound(DEGREE, "degree", at + 1)


def _currency(tokens: Sequence[Token], at: int) -> UnitFound | None:
    at += lower_at(tokens, at) == "us" and lower_at(tokens, at + 1) in {"dollars", "dollar", "$"}
    lower = lower_at(tokens, at)
    unit = CURRENCIES.get(lower) or CURRENCY_SIGNS.get(lower)
    return None if unit is None else UnitFound(unit, lower, at + 1)


def _measure(tokens: Sequence[Token], at: int) -> UnitFound | None:
    """A unit with its power, and what it is divided by."""
    found = _single(tokens, at)
    if found is None:
        return None
    per = lower_at(tokens, found.end)
    if per not in {"/", "per"}:
        return found
    below = _single(tokens, found.end + 1)
    if below is None:
        return found
    return UnitFound(found.unit.times(below.unit.power(-1)), found.name, below.end)


def _single(tokens: Sequence[Token], at: int) -> UnitFound | None:
    power = _POWERS.get(lower_at(tokens, at), 0)
    at += power > 0
    if at >= len(tokens) or not tokens[at].word:
        return None
    token = tokens[at]
    end = at + 1
    split = token.lower in PREFIXES and lower_at(tokens, end)  # "kilo metres"
    parted = NAMES.get(token.lower + split) if split else None
    unit = parted or SYMBOLS.get(token.text) or NAMES.get(token.lower)
    if unit is None:
        return None
    end += parted is not None
    # "miles square" is no unit; "m^2", "m2" and "km^2" are.
    raised = number_at(tokens, end + 1) if lower_at(tokens, end) == "^" else None
    if raised is not None and raised % 1 == 0 and raised <= _MAX_POWER:
        return UnitFound(unit.power(int(raised)), token.lower, end + 2)
    if adjacent(tokens, end) and number_at(tokens, end) in {2.0, 3.0} and len(unit.dimension) == 1:
        return UnitFound(unit.power(int(number_at(tokens, end) or 1)), token.lower, end + 1)
    if not power and len(unit.dimension) == 1:
        power = _POWERS_BEHIND.get(lower_at(tokens, end), 0)
        end += power > 0
    return UnitFound(unit.power(power) if power else unit, token.lower, end)
