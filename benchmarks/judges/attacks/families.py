"""Families of attacks, their wordings, and what of them is held back.

The split was written down before any held-back figure was looked at, and is a rule, not a choice: families in
alphabetical order, every second one held back, the first among them; of the others every second wording.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

WORDINGS: Final = Path(__file__).with_name("wordings.toml")
RIGHT: Final = "right"
"""The table of wordings around right answers, which are no attack."""
_FIELD: Final = re.compile(r"\{(answer|question|reference|other[1-9])\}")


class Half(StrEnum):
    """What guards are made on, and what they are reported on."""

    DEVELOPMENT = "development"
    HELD_BACK = "held_back"


@dataclass(frozen=True, slots=True)
class Wording:
    """One text that stands for a wrong answer.

    Attributes:
        place: Among those of its family.
        template: With the fields {answer}, {question}, {reference}, {other1} to {other9}; other braces are text.
    """

    place: int
    template: str

    @property
    def fields(self) -> set[str]:
        """What it names."""
        return set(_FIELD.findall(self.template))

    def written(self, texts: Mapping[str, str]) -> str:
        """With the texts of its fields."""
        return _FIELD.sub(lambda match: texts[match[1]], self.template)


@dataclass(frozen=True, slots=True)
class Family:
    """Attacks of one kind.

    Attributes:
        name: Unique.
        about: One line for people.
        wordings: At least four.
        in_caption: Whether they stand in the item's caption, and the wrong answer stays as it is.
        held_back: Whether guards are made without a look at any of them.
    """

    name: str
    about: str
    wordings: tuple[Wording, ...]
    in_caption: bool
    held_back: bool

    def of_half(self, half: Half) -> Sequence[Wording]:
        """The wordings of a half; of a family that is held back all or none."""
        if self.held_back:
            return self.wordings if half is Half.HELD_BACK else ()
        return self.wordings[half is Half.HELD_BACK :: 2]


def read_families(path: Path = WORDINGS) -> tuple[Family, ...]:
    """All families, in alphabetical order."""
    tables = _tables(path)
    names = sorted(name for name in tables if name != RIGHT)
    return tuple(
        Family(
            name,
            tables[name]["about"],
            _wordings(tables[name]["wordings"]),
            in_caption=tables[name].get("in_caption", False),
            held_back=place % 2 == 0,
        )
        for place, name in enumerate(names)
    )


def read_right(path: Path = WORDINGS) -> tuple[Wording, ...]:
    """Wordings around right answers that have words in common with attacks."""
    return _wordings(_tables(path)[RIGHT]["wordings"])


def _tables(path: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads(path.read_text("utf-8"))


def _wordings(templates: Sequence[str]) -> tuple[Wording, ...]:
    return tuple(Wording(place, template) for place, template in enumerate(templates))
