"""Parse the templates in prompt files, and fill in an item's texts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Final

from gradewire_server.domain.items import shortened


class PromptError(ValueError):
    """An error for a prompt file that cannot be used or does not exist.

    `place` is the shortened key in the file ("variants.rating.steps[0].labels"); "" means the whole file.
    """

    def __init__(self, place: str, message: str) -> None:
        self.place = shortened(place)
        super().__init__(f"{self.place}: {message}" if place else message)

    def __copy__(self) -> "PromptError":
        made = PromptError("", str(self))
        made.place = self.place
        return made


_CUT: Final = frozenset({"prediction", "second"})
_OPTIONAL: Final = frozenset({"caption", "problem"})
_LABEL: Final = re.compile(r"[\W_]*([^\W_][^\n:]{0,40}?)\s*:")


@dataclass(frozen=True, slots=True)
class Rendered:
    """An item's text in three pieces, of which a judge may shorten only `prediction`."""

    lead: str
    prediction: str
    tail: str

    @property
    def text(self) -> str:
        """The whole text."""
        return self.lead + self.prediction + self.tail


@dataclass(frozen=True, slots=True)
class Template:
    """A template. Each line is a sequence of pieces: literal text, and the field after the text (None: no field)."""

    lines: tuple[tuple[tuple[str, str | None], ...], ...]

    @property
    def fields(self) -> frozenset[str]:
        """The names of the fields."""
        return frozenset(field for line in self.lines for _, field in line if field is not None)

    @property
    def field_labels(self) -> tuple[str, ...]:
        """The labels before a colon at the start of a line. An answer must not imitate these labels."""
        found = (_LABEL.match(line[0][0]) for line in self.lines)
        return tuple(dict.fromkeys(match[1] for match in found if match is not None))

    def render(self, fields: Mapping[str, str]) -> Rendered:
        """Fill in the fields, one line each; omit a line whose `caption` or `problem` field is empty."""
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
    """Parse a template with fields in braces; `place` is the template's key in the file, for messages.

    Raises:
        PromptError: Braces are unbalanced; a field is unknown, missing or repeated; or a field has a format or
            conversion.
    """
    lines = tuple(_pieces(line, place) for line in text.strip("\n").split("\n"))
    found = [field for line in lines for _, field in line if field is not None]
    for field in found:
        if field not in needed | optional:
            raise PromptError(
                place, f"{{{shortened(field)}}} is not a field. The fields are {', '.join(sorted(needed | optional))}"
            )
        if found.count(field) > 1:
            raise PromptError(place, f"{{{field}}} occurs more than once")
    for field in sorted(needed.difference(found)):
        raise PromptError(place, f"{{{field}}} is missing")
    return Template(lines)


def _pieces(line: str, place: str) -> tuple[tuple[str, str | None], ...]:
    pieces: list[tuple[str, str | None]] = []
    try:
        for literal, field, specification, conversion in Formatter().parse(line):
            if specification or conversion:
                raise PromptError(place, f"{{{shortened(field or '')}}} must not have a format or conversion")
            pieces.append((literal, field))
    except ValueError as error:
        if isinstance(error, PromptError):
            raise
        raise PromptError(place, f"{shortened(str(error))}. Write {{{{ and }}}} for braces") from None
    return tuple(pieces) or (("", None),)
