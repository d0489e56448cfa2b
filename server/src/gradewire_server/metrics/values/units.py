"""Units of measure, and their spellings in texts: "km/h", "degrees Celsius", "m^2"."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from gradewire_server.metrics.values.tokens import VOCABULARY, Token, adjacent, lower_at, number_at, phrase_at, phrases

Dimension = tuple[tuple[str, int], ...]
"""Base quantities and their powers, sorted by name: (("length", 1), ("time", -1)) is a speed; () is a plain number."""

_WORDS: Final = VOCABULARY["units"]
_MAX_POWER: Final = 9


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measure: value in base units = factor · value + offset.

    Units of the same dimension can be compared. Scales with a different zero, like Celsius, have an offset.
    """

    dimension: Dimension
    factor: float
    offset: float = 0.0

    def scaled(self, factor: float) -> "Unit":
        """Return the unit times a factor: 1000 for "kilometre"."""
        return Unit(self.dimension, self.factor * factor)

    def power(self, exponent: int) -> "Unit":
        """Return the unit to the power of `exponent`: 2 for "square metre"."""
        return Unit(tuple((base, power * exponent) for base, power in self.dimension), self.factor**exponent)

    def times(self, other: "Unit") -> "Unit":
        """Return the product of two units."""
        powers = dict(self.dimension)
        for base, power in other.dimension:
            powers[base] = powers.get(base, 0) + power
        dimension = tuple(sorted((base, power) for base, power in powers.items() if power))
        return Unit(dimension, self.factor * other.factor)


_DIMENSIONS: Final[Mapping[str, Dimension]] = {
    name: tuple(powers.items()) for name, powers in _WORDS["dimensions"].items()
}
PREFIXES: Final[Mapping[str, float]] = _WORDS["prefixes"]
CELSIUS: Final = Unit(_DIMENSIONS["temperature"], 1.0, 273.15)
FAHRENHEIT: Final = Unit(_DIMENSIONS["temperature"], 5 / 9, 459.67 * 5 / 9)
KELVIN: Final = Unit(_DIMENSIONS["temperature"], 1.0)
PERCENT: Final = Unit((), 0.01)
DEGREE: Final = Unit(_DIMENSIONS["angle"], 1.0)
RADIAN: Final = Unit(_DIMENSIONS["angle"], 57.29577951308232)
FOOT: Final = Unit(_DIMENSIONS["length"], 0.3048)
INCH: Final = Unit(_DIMENSIONS["length"], 0.0254)


def _rows_with_units(table: Mapping[str, Sequence[Sequence[Any]]]) -> Iterator[tuple[Any, ...]]:
    for name, rows in table.items():
        for *names, factor in rows:
            yield *names, Unit(_DIMENSIONS[name], factor)


def _units_by_name() -> dict[str, Unit]:
    found = {"celsius": CELSIUS, "centigrade": CELSIUS, "fahrenheit": FAHRENHEIT, "kelvin": KELVIN, "kelvins": KELVIN}
    for _, names, unit in _rows_with_units(_WORDS["with_prefixes"]):
        for name in names.split():
            for prefix, scale in (("", 1.0), *PREFIXES.items()):
                found[prefix + name] = found[f"{prefix}{name}s"] = unit.scaled(scale)
    for names, unit in _rows_with_units(_WORDS["without_prefixes"]):
        for name in names.split():
            found[name] = found[f"{name}s"] = unit
    del found["has"]  # "has" hardly ever means hectares
    return found


def _units_by_symbol() -> dict[str, Unit]:
    mass = _DIMENSIONS["mass"]
    bit = _DIMENSIONS["data"]
    found = {"K": KELVIN, "u": Unit(mass, 1.66053907e-27), "kt": Unit(mass, 1e6)}
    found |= {f"{prefix}b": Unit(bit, scale) for prefix, scale in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))}
    for symbol, _, unit in _rows_with_units(_WORDS["with_prefixes"]):
        for prefix, scale in (("", 1.0), *_WORDS["prefix_symbols"].items()):
            found.setdefault(prefix + symbol, unit.scaled(scale))
    for symbol in _WORDS["no_symbols"].split():
        found.pop(symbol, None)
    return found


def _money(currency: str, factor: float = 1.0) -> Unit:
    return Unit(((f"money {currency}", 1),), factor)


NAMES: Final = MappingProxyType(_units_by_name())
"""The units by lower-case name."""
SYMBOLS: Final = MappingProxyType(_units_by_symbol())
"""The units by case-sensitive symbol."""
CURRENCY_SIGNS: Final = MappingProxyType(
    {sign: _money(currency) for currency, (sign, _) in _WORDS["currencies"].items() if sign}
)
"""The currencies by the sign that stands before or after an amount."""
CURRENCIES: Final = MappingProxyType(
    {
        **{word: _money(currency) for currency, (_, words) in _WORDS["currencies"].items() for word in words.split()},
        **dict.fromkeys(("cent", "cents"), _money("USD", 0.01)),
        **dict.fromkeys(("centime", "centimes"), _money("EUR", 0.01)),
        "pence": _money("GBP", 0.01),
    }
)
"""The currencies by the lower-case word that stands before or after an amount. "Pound" is a mass, unless the other
amount in a comparison is in "£"."""

_SHARES: Final = phrases(_WORDS["shares"])
_DEGREES: Final = frozenset(_WORDS["degrees"].split())
_SCALES_OF_TEMPERATURE: Final = {
    "c": CELSIUS, "celsius": CELSIUS, "centigrade": CELSIUS, "f": FAHRENHEIT, "fahrenheit": FAHRENHEIT, "k": KELVIN,
    "kelvin": KELVIN,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnitFound:
    """A unit among tokens.

    Attributes:
        name: The unit's last word in lower case.
        end: The index of the token after the unit.
        sign: -1 for degrees south and west, otherwise 1.
    """

    unit: Unit
    name: str
    end: int
    sign: int = 1


def unit_at(tokens: Sequence[Token], at: int) -> UnitFound | None:
    """Return the unit that begins at a token after a number, or None if no unit begins there."""
    lower = lower_at(tokens, at)
    if lower == "-" and adjacent(tokens, at) and adjacent(tokens, at + 1):  # "a 5-km race"
        at += 1
        lower = lower_at(tokens, at)
    if not lower:
        return None
    return _share(tokens, at) or _degrees(tokens, at) or _currency(tokens, at) or _measure(tokens, at)


def _share(tokens: Sequence[Token], at: int) -> UnitFound | None:
    found = phrase_at(tokens, at, _SHARES)
    return None if found is None else UnitFound(Unit((), found[0]), tokens[found[1] - 1].lower, found[1])


def _degrees(tokens: Sequence[Token], at: int) -> UnitFound | None:
    if lower_at(tokens, at) not in _DEGREES:
        return None
    following = lower_at(tokens, at + 1)
    if following in _SCALES_OF_TEMPERATURE:
        return UnitFound(_SCALES_OF_TEMPERATURE[following], following, at + 2)
    if following in _WORDS["directions"]:
        axis = "latitude" if following in {"n", "s", "north", "south"} else "longitude"
        return UnitFound(Unit(((axis, 1),), 1.0), following, at + 2, _WORDS["directions"][following])
    return UnitFound(DEGREE, "degree", at + 1)


def _currency(tokens: Sequence[Token], at: int) -> UnitFound | None:
    at += lower_at(tokens, at) == "us" and lower_at(tokens, at + 1) in {"dollars", "dollar", "$"}
    at += lower_at(tokens, at) == "swiss" and lower_at(tokens, at + 1) in {"franc", "francs"}
    lower = lower_at(tokens, at)
    unit = CURRENCIES.get(lower) or CURRENCY_SIGNS.get(lower)
    return None if unit is None else UnitFound(unit, lower, at + 1)


def _measure(tokens: Sequence[Token], at: int) -> UnitFound | None:
    found = _single(tokens, at)
    if found is None:
        return None
    per = lower_at(tokens, found.end)
    if per not in {"/", "per"}:
        at = found.end + (per == "*")
        behind = _single(tokens, at)
        power = 0 if behind is None else _negative_power(tokens, behind.end)
        if behind is None or not power:
            return found
        end = behind.end + (3 if lower_at(tokens, behind.end + 1) == "-" else 5)
        return UnitFound(found.unit.times(behind.unit.power(-power)), found.name, end)
    below = _single(tokens, found.end + 1)
    if below is None:
        return found
    return UnitFound(found.unit.times(below.unit.power(-1)), found.name, below.end)


def _negative_power(tokens: Sequence[Token], at: int) -> int:
    """Return 2 for "^-2" or "^(-2)" at an index; 0 for anything else."""
    bracket = lower_at(tokens, at + 1) == "("
    power = number_at(tokens, at + 2 + bracket)
    if lower_at(tokens, at) != "^" or lower_at(tokens, at + 1 + bracket) != "-" or power is None:
        return 0
    return int(power) if power % 1 == 0 and power <= _MAX_POWER else 0


def _single(tokens: Sequence[Token], at: int) -> UnitFound | None:
    power = _WORDS["powers_before"].get(lower_at(tokens, at), 0)
    at += power > 0
    if at >= len(tokens) or not tokens[at].word:
        return None
    token = tokens[at]
    end = at + 1
    # "kilo metres", "arc minutes"
    split = (token.lower in PREFIXES or token.lower == "arc") and lower_at(tokens, end)
    parted = NAMES.get(token.lower + split) if split else None
    unit = parted or SYMBOLS.get(token.text) or NAMES.get(token.lower)
    if token.text == "M" and not adjacent(tokens, at):  # "0.5 M", but not "5M"
        unit = NAMES["molar"]
    if unit is None:
        return None
    end += parted is not None
    # "miles square" is not a unit, but "m^2", "m2" and "km^2" are units.
    raised = number_at(tokens, end + 1) if lower_at(tokens, end) == "^" else None
    if raised is not None and raised % 1 == 0 and raised <= _MAX_POWER:
        return UnitFound(unit.power(int(raised)), token.lower, end + 2)
    if adjacent(tokens, end) and number_at(tokens, end) in {2.0, 3.0} and len(unit.dimension) == 1:
        return UnitFound(unit.power(int(number_at(tokens, end) or 1)), token.lower, end + 1)
    if not power and len(unit.dimension) == 1:
        power = _WORDS["powers_behind"].get(lower_at(tokens, end), 0)
        end += power > 0
    return UnitFound(unit.power(power) if power else unit, token.lower, end)
