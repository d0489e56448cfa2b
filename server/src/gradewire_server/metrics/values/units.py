"""Units of measure, as factors of base units, and how texts write them: "km/h", "degrees Celsius", "m^2"."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gradewire_server.metrics.values.numerals import adjacent, lower_at, number_at, tokens_are
from gradewire_server.metrics.values.tokens import Token

Dimension = tuple[tuple[str, int], ...]
"""Base quantities and their powers, by name: (("length", 1), ("time", -1)) is a speed; () is a plain number."""

PREFIXES: Final = {
    "pico": 1e-12, "nano": 1e-9, "micro": 1e-6, "milli": 1e-3, "centi": 1e-2, "deci": 1e-1, "hecto": 1e2, "kilo": 1e3,
    "mega": 1e6, "giga": 1e9, "tera": 1e12, "peta": 1e15,
}  # fmt: skip
"""What names of units begin with, and what it multiplies."""
_PREFIX_SYMBOLS: Final = {
    "p": 1e-12, "n": 1e-9, "\u03bc": 1e-6, "u": 1e-6, "m": 1e-3, "c": 1e-2, "d": 1e-1, "h": 1e2, "k": 1e3, "M": 1e6,
    "G": 1e9, "T": 1e12,
}  # fmt: skip
_LENGTH: Final[Dimension] = (("length", 1),)
_MASS: Final[Dimension] = (("mass", 1),)
_TIME: Final[Dimension] = (("time", 1),)
_TEMPERATURE: Final[Dimension] = (("temperature", 1),)
_FORCE: Final[Dimension] = (("length", 1), ("mass", 1), ("time", -2))
_ENERGY: Final[Dimension] = (("length", 2), ("mass", 1), ("time", -2))
_POWER: Final[Dimension] = (("length", 2), ("mass", 1), ("time", -3))
_PRESSURE: Final[Dimension] = (("length", -1), ("mass", 1), ("time", -2))
_VOLUME: Final[Dimension] = (("length", 3),)
_AREA: Final[Dimension] = (("length", 2),)
_SPEED: Final[Dimension] = (("length", 1), ("time", -1))
_DATA: Final[Dimension] = (("data", 1),)
_ANGLE: Final[Dimension] = (("angle", 1),)

# Symbol, names, dimension, factor: units that take prefixes.
_PREFIXED: Final[tuple[tuple[str, str, Dimension, float], ...]] = (
    ("m", "metre meter", _LENGTH, 1.0),
    ("g", "gram gramme", _MASS, 1e-3),
    ("s", "second", _TIME, 1.0),
    ("A", "ampere amp", (("current", 1),), 1.0),
    ("V", "volt", (("voltage", 1),), 1.0),
    ("W", "watt", _POWER, 1.0),
    ("Wh", "watt-hour", _ENERGY, 3600.0),
    ("J", "joule", _ENERGY, 1.0),
    ("cal", "calorie", _ENERGY, 4.184),
    ("eV", "electronvolt", _ENERGY, 1.602176634e-19),
    ("N", "newton", _FORCE, 1.0),
    ("Pa", "pascal", _PRESSURE, 1.0),
    ("bar", "bar", _PRESSURE, 1e5),
    ("Hz", "hertz", (("time", -1),), 1.0),
    ("L", "litre liter", _VOLUME, 1e-3),
    ("l", "", _VOLUME, 1e-3),
    ("B", "byte", _DATA, 8.0),
    ("bit", "bit", _DATA, 1.0),
    ("\u03a9", "ohm", (("resistance", 1),), 1.0),
    ("F", "farad", (("capacitance", 1),), 1.0),
    ("T", "tesla", (("field", 1),), 1.0),
    ("mol", "mole", (("amount", 1),), 1.0),
    ("t", "", _MASS, 1e3),
    ("pc", "parsec", _LENGTH, 3.0857e16),
)
_DAY: Final = 86_400.0
_YEAR: Final = 365.25 * _DAY
# Names and symbols, dimension, factor: units without prefixes. Plurals in "s" come by themselves.
_PLAIN: Final[tuple[tuple[str, Dimension, float], ...]] = (
    ("minute min", _TIME, 60.0),
    ("hour h hr", _TIME, 3600.0),
    ("day d", _TIME, _DAY),
    ("week wk", _TIME, 7 * _DAY),
    ("fortnight", _TIME, 14 * _DAY),
    ("month", _TIME, _YEAR / 12),
    ("year yr", _TIME, _YEAR),
    ("decade", _TIME, 10 * _YEAR),
    ("century centuries", _TIME, 100 * _YEAR),
    ("millennium millennia", _TIME, 1000 * _YEAR),
    ("sec", _TIME, 1.0),
    ("inch inches", _LENGTH, 0.0254),
    ("foot feet ft", _LENGTH, 0.3048),
    ("yard yd", _LENGTH, 0.9144),
    ("mile mi", _LENGTH, 1609.344),
    ("furlong", _LENGTH, 201.168),
    ("light-year lightyear ly", _LENGTH, 9.4607e15),
    ("au", _LENGTH, 1.495978707e11),
    ("angstrom \u00e5", _LENGTH, 1e-10),
    ("micron", _LENGTH, 1e-6),
    ("pound lb", _MASS, 0.45359237),
    ("ounce oz", _MASS, 0.028349523125),
    ("stone", _MASS, 6.35029318),
    ("tonne", _MASS, 1000.0),
    ("ton", _MASS, 1000.0),
    ("kilo", _MASS, 1.0),
    ("carat", _MASS, 0.0002),
    ("mph", _SPEED, 0.44704),
    ("kph kmh", _SPEED, 1 / 3.6),
    ("knot kn", _SPEED, 0.514444),
    ("hectare ha", _AREA, 1e4),
    ("acre", _AREA, 4046.8564224),
    ("gallon gal", _VOLUME, 0.003785411784),
    ("pint", _VOLUME, 0.000473176473),
    ("quart", _VOLUME, 0.000946352946),
    ("cup", _VOLUME, 0.0002365882365),
    ("tablespoon tbsp", _VOLUME, 1.478676478e-5),
    ("teaspoon tsp", _VOLUME, 4.92892159e-6),
    ("cc", _VOLUME, 1e-6),
    ("barrel bbl", _VOLUME, 0.158987294928),
    ("horsepower hp", _POWER, 745.69987158),
    ("atmosphere atm", _PRESSURE, 101_325.0),
    ("psi", _PRESSURE, 6894.757293168),
    ("mmhg", _PRESSURE, 133.322),
    ("rpm", (("time", -1),), 1 / 60),
    ("radian rad", _ANGLE, 57.29577951308232),
    ("degree \u00b0 deg", _ANGLE, 1.0),
    ("decibel db", (("loudness", 1),), 1.0),
    ("percent pct", (), 0.01),
    ("permille", (), 0.001),
    ("bp bps", (), 0.0001),
    ("ppm", (), 1e-6),
)

_POWERS_BEHIND: Final = {"squared": 2, "cubed": 3}
_POWERS: Final = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}

_DEGREES: Final = frozenset({"\u00b0", "degree", "degrees", "deg"})
_DIRECTIONS: Final = {"n": 1, "north": 1, "e": 1, "east": 1, "s": -1, "south": -1, "w": -1, "west": -1}
_SHARES: Final = frozenset({"%", "percent", "percentage", "per", "\u2030", "basis"})
_MAX_POWER: Final = 9


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: value in base units = factor · value + offset.

    Attributes:
        dimension: What it measures; two units of the same dimension can be compared.
        factor: Above 0.
        offset: Of scales whose zero is another one, else 0.
    """

    dimension: Dimension
    factor: float
    offset: float = 0.0

    def power(self, exponent: int) -> "Unit":
        """The unit to a power; "square metre" is 2."""
        return Unit(tuple((base, power * exponent) for base, power in self.dimension), self.factor**exponent)

    def times(self, other: "Unit") -> "Unit":
        """The product of two units."""
        powers = dict(self.dimension)
        for base, power in other.dimension:
            powers[base] = powers.get(base, 0) + power
        dimension = tuple(sorted((base, power) for base, power in powers.items() if power))
        return Unit(dimension, self.factor * other.factor)


CELSIUS: Final = Unit(_TEMPERATURE, 1.0, 273.15)
FAHRENHEIT: Final = Unit(_TEMPERATURE, 5 / 9, 459.67 * 5 / 9)
KELVIN: Final = Unit(_TEMPERATURE, 1.0)
PERCENT: Final = Unit((), 0.01)
DEGREE: Final = Unit(_ANGLE, 1.0)
RADIAN: Final = Unit(_ANGLE, 57.29577951308232)
FOOT: Final = Unit(_LENGTH, 0.3048)
INCH: Final = Unit(_LENGTH, 0.0254)


def _named() -> dict[str, Unit]:
    """Units by names in small letters, plurals among them."""
    found = {"celsius": CELSIUS, "centigrade": CELSIUS, "fahrenheit": FAHRENHEIT, "kelvin": KELVIN, "kelvins": KELVIN}
    for _, names, dimension, factor in _PREFIXED:
        for name in names.split():
            for prefix, scale in (("", 1.0), *PREFIXES.items()):
                unit = Unit(dimension, factor * scale)
                found[prefix + name] = found[f"{prefix}{name}s"] = unit
    for names, dimension, factor in _PLAIN:
        for name in names.split():
            found[name] = found[f"{name}s"] = Unit(dimension, factor)
    del found["has"]  # is hardly ever hectares
    return found


def _symbols() -> dict[str, Unit]:
    """Units by symbols, in which capitals count: "MW" and "mW"."""
    found = {"K": KELVIN, "u": Unit(_MASS, 1.66053907e-27), "kt": Unit(_MASS, 1e6)}
    for symbol, _, dimension, factor in _PREFIXED:
        for prefix, scale in (("", 1.0), *_PREFIX_SYMBOLS.items()):
            found.setdefault(prefix + symbol, Unit(dimension, factor * scale))
    return found


NAMES: Final = MappingProxyType(_named())
"""Units by their names in small letters."""
SYMBOLS: Final = MappingProxyType(
    {symbol: unit for symbol, unit in _symbols().items() if symbol not in {"min", "mmol", "cd", "ha", "pt", "ft", "ht"}}
)
"""Units by their symbols, as written."""


def money(currency: str, factor: float = 1.0) -> Unit:
    """The unit of a currency; `factor` is 0.01 for its cents."""
    return Unit(((f"money {currency}", 1),), factor)


CURRENCY_SIGNS: Final = MappingProxyType({
    "$": money("USD"), "\u20ac": money("EUR"), "\u00a3": money("GBP"), "\u00a5": money("JPY"), "\u20b9": money("INR"),
    "\u20a9": money("KRW"), "\u20bd": money("RUB"),
})  # fmt: skip
"""Units by the sign before or behind an amount."""
CURRENCIES: Final = MappingProxyType({
    **dict.fromkeys(("dollar", "dollars", "usd", "us$"), money("USD")),
    **dict.fromkeys(("euro", "euros", "eur"), money("EUR")),
    **dict.fromkeys(("gbp", "sterling", "quid"), money("GBP")),
    **dict.fromkeys(("yen", "jpy"), money("JPY")),
    **dict.fromkeys(("yuan", "rmb", "cny", "renminbi"), money("CNY")),
    **dict.fromkeys(("rupee", "rupees", "inr", "rs"), money("INR")),
    **dict.fromkeys(("won", "krw"), money("KRW")),
    **dict.fromkeys(("ruble", "rubles", "rouble", "roubles", "rub"), money("RUB")),
    **dict.fromkeys(("franc", "francs", "chf"), money("CHF")),
    **dict.fromkeys(("peso", "pesos", "mxn"), money("MXN")),
    **dict.fromkeys(("cad",), money("CAD")),
    **dict.fromkeys(("aud",), money("AUD")),
    **dict.fromkeys(("cent", "cents"), money("USD", 0.01)),
    **dict.fromkeys(("pence",), money("GBP", 0.01)),
})  # fmt: skip
"""Units by the word before or behind an amount, in small letters. "Pound" is a mass unless a "£" stands elsewhere."""


_SCALES_OF_TEMPERATURE: Final = {
    "c": CELSIUS, "celsius": CELSIUS, "centigrade": CELSIUS, "f": FAHRENHEIT, "fahrenheit": FAHRENHEIT, "k": KELVIN,
    "kelvin": KELVIN,
}  # fmt: skip


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
