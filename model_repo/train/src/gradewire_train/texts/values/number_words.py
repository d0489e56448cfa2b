"""Numbers as English and Roman writing has them."""

from typing import Final

from gradewire_train.texts.data import word_list

_ONES = word_list("ones")
_TENS = word_list("tens")
_SCALES: Final = ((1_000_000, "million"), (1_000, "thousand"), (100, "hundred"))
_ROMAN: Final = ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))
_IRREGULAR: Final = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_LIMIT: Final = 1_000_000_000


def in_words(value: int) -> str:
    """The number in words, without "and": 1024 is "one thousand twenty-four".

    Raises:
        ValueError: It is negative, or a milliard or more.
    """
    if not 0 <= value < _LIMIT:
        raise ValueError(f"{value} is not between 0 and {_LIMIT - 1}")
    for size, name in _SCALES:
        if value >= size:
            rest = f" {in_words(value % size)}" if value % size else ""
            return f"{in_words(value // size)} {name}{rest}"
    if value < len(_ONES):
        return _ONES[value]
    return _TENS[value // 10] + (f"-{_ONES[value % 10]}" if value % 10 else "")


def digits(value: int) -> str:
    """The number in digits with commas between thousands: "12,500"."""
    return f"{value:,}"


def ordinal(value: int) -> str:
    """The rank in digits: "21st", "112th"."""
    teen = 10 <= value % 100 <= 20
    ending = "th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{ending}"


def ordinal_in_words(value: int) -> str:
    """The rank in words: "twenty-first"."""
    head, dash, last = in_words(value).rpartition("-" if value % 10 and value > len(_ONES) else " ")
    if last in _IRREGULAR:
        last = _IRREGULAR[last]
    else:
        last = f"{last.removesuffix('y')}ieth" if last.endswith("y") else f"{last}th"
    return f"{head}{dash}{last}"


def roman(value: int) -> str:
    """The number in Roman figures, for small ones: "XIV"."""
    found = ""
    for size, figure in _ROMAN:
        while value >= size:
            found += figure
            value -= size
    return found
