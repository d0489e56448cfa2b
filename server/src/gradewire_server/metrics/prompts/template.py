"""Templates of prompt files, and tables read key by key with errors that name the key."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final, TypeVar

from gradewire_server.domain.items import shortened

T = TypeVar("T")


class PromptError(ValueError):
    """A prompt file cannot be used, or is not there.

    Attributes:
        place: Key in the file ("variants.rating.steps[0].labels"), cut as what is quoted; "" where it is the file as a
            whole.
    """

    def __init__(self, place: str, message: str) -> None:
        self.place = shortened(place)
        super().__init__(f"{self.place}: {message}" if place else message)

    def __copy__(self) -> "PromptError":
        made = PromptError("", str(self))
        made.place = self.place
        return made


class Table:
    """One table of a TOML document.

    Args:
        values: As the TOML parser gives them.
        place: Key of the table, "" for the document itself.
    """

    def __init__(self, values: dict[str, Any], place: str) -> None:
        self._values = values
        self._place = place
        self._read: set[str] = set()

    def at(self, key: str) -> str:
        """Return the key as messages name it."""
        return f"{self._place}.{key}" if self._place else key

    def get(self, key: str, kind: type[T], what: str) -> T | None:
        """Return the value of `key`, None where it is not there; `what` names its type in messages."""
        self._read.add(key)
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise PromptError(self.at(key), f"must be {what}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string; without a default it must be there."""
        value = self.get(key, str, "a string")
        return self._or_default(key, value, default)

    def integer(self, key: str, minimum: int, maximum: int, default: int | None = None) -> int:
        """Return a whole number within bounds; without a default it must be there."""
        value = self._or_default(key, self.get(key, int, "a whole number"), default)
        if not minimum <= value <= maximum:
            raise PromptError(self.at(key), f"must be from {minimum} to {maximum}")
        return value

    def number(self, key: str, minimum: float, maximum: float, default: float | None = None) -> float:
        """Return a number within bounds; without a default it must be there."""
        self._read.add(key)
        value = self._or_default(key, self._values.get(key), default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise PromptError(self.at(key), f"must be a number from {minimum:g} to {maximum:g}")
        return float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings, at least one."""
        value = self._or_default(key, self.get(key, list, "a list of strings"), None)
        if not value or not all(isinstance(text, str) for text in value):
            raise PromptError(self.at(key), "must be a list of strings, one at least")
        return tuple(value)

    def table(self, key: str) -> "Table | None":
        """Return a table, None where it is not there."""
        value = self.get(key, dict, "a table")
        return None if value is None else Table(value, self.at(key))

    def tables(self, key: str) -> "list[Table]":
        """Return a list of tables, one at least; it must be there."""
        value = self._or_default(key, self.get(key, list, "a list of tables"), None)
        if not value or not all(isinstance(row, dict) for row in value):
            raise PromptError(self.at(key), "must be a list of tables, one at least")
        return [Table(row, f"{self.at(key)}[{index}]") for index, row in enumerate(value)]

    def keys(self) -> tuple[str, ...]:
        """Return all keys, in the order of the file."""
        return tuple(self._values)

    def finish(self) -> None:
        """Raise PromptError for the first key that was not read: the format does not have it."""
        for key in self._values:
            if key not in self._read:
                known = ", ".join(sorted(self._read))
                raise PromptError(self.at(key), f"is not known; known here: {known}")

    def _or_default(self, key: str, value: T | None, default: T | None) -> T:
        found = default if value is None else value
        if found is None:
            raise PromptError(self.at(key), "is missing")
        return found


_CUT: Final = frozenset({"prediction", "second"})
_OPTIONAL: Final = frozenset({"caption", "problem"})
_LABEL: Final = re.compile(r"[\W_]*([^\W_][^\n:]{0,40}?)\s*:")


@dataclass(frozen=True, slots=True)
class Rendered:
    """An item's text in three pieces, of which only the middle one may be shortened."""

    lead: str
    prediction: str
    tail: str

    @property
    def text(self) -> str:
        """All of it."""
        return self.lead + self.prediction + self.tail


@dataclass(frozen=True, slots=True)
class Template:
    """A template, parsed.

    Attributes:
        lines: Of each line the pieces: literal text, and the field behind it or None.
    """

    lines: tuple[tuple[tuple[str, str | None], ...], ...]

    @property
    def fields(self) -> frozenset[str]:
        """Names of the fields."""
        return frozenset(field for line in self.lines for _, field in line if field is not None)

    @property
    def field_labels(self) -> tuple[str, ...]:
        """Return what stands before a colon at the begin of a line: what an answer must not imitate."""
        found = (_LABEL.match(line[0][0]) for line in self.lines)
        return tuple(dict.fromkeys(match[1] for match in found if match is not None))

    def render(self, fields: Mapping[str, str]) -> Rendered:
        """Put the fields in; a line with an empty caption or problem is left out.

        Args:
            fields: One line each, by name; all that the template names.
        """
        before: list[str] = []
        after: list[str] = []
        prediction = ""
        current = before
        started = False
        for line in self.lines:
            if any(field in _OPTIONAL and not fields[field] for _, field in line):
                continue
            if started:
                current.append("\n")
            started = True
            for literal, field in line:
                current.append(literal)
                if field in _CUT:
                    prediction = fields[field]
                    current = after
                elif field is not None:
                    current.append(fields[field])
        return Rendered("".join(before), prediction, "".join(after))


def read_template(text: str, place: str, *, needed: frozenset[str], optional: frozenset[str]) -> Template:
    """Parse a template.

    Args:
        text: Fields in braces; "{{" and "}}" are braces.
        place: Key in the file, for messages.
        needed: Fields that must be there, each once.
        optional: Fields that may be there, once.

    Raises:
        PromptError: Unbalanced braces; a field that is unknown, missing, repeated, or has a format or conversion.
    """
    lines = tuple(_pieces(line, place) for line in text.strip("\n").split("\n"))
    found = [field for line in lines for _, field in line if field is not None]
    for field in found:
        if field not in needed | optional:
            raise PromptError(
                place, f"{{{shortened(field)}}} is not a field; fields here: {', '.join(sorted(needed | optional))}"
            )
        if found.count(field) > 1:
            raise PromptError(place, f"{{{field}}} stands there more than once")
    for field in sorted(needed.difference(found)):
        raise PromptError(place, f"{{{field}}} is missing")
    return Template(lines)


def _pieces(line: str, place: str) -> tuple[tuple[str, str | None], ...]:
    pieces: list[tuple[str, str | None]] = []
    try:
        for literal, field, specification, conversion in Formatter().parse(line):
            if specification or conversion:
                raise PromptError(place, f"{{{shortened(field or '')}}} takes no format and no conversion")
            pieces.append((literal, field))
    except ValueError as error:
        if isinstance(error, PromptError):
            raise
        raise PromptError(place, f"{shortened(str(error))}; write {{{{ and }}}} for braces") from None
    return tuple(pieces) or (("", None),)
