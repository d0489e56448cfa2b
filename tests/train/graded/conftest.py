"""Drawn rows of every kind of both parts, over all of WordNet."""

from collections.abc import Mapping, Sequence

import pytest

from gradewire_train.graded.drawing import Drawer
from gradewire_train.graded.parts import Name
from gradewire_train.graded.wording import DrawnRow
from gradewire_train.texts.lexicon import Lexicon

COUNT = 30
Rows = Mapping[str, Sequence[DrawnRow]]


@pytest.fixture(scope="session")
def drawn(lexicon: Lexicon) -> Mapping[Name, Rows]:
    parts: tuple[Name, Name] = ("train", "eval")
    drawers = {part: Drawer(lexicon, part) for part in parts}
    return {
        part: {kind: list(drawer.rows(kind, COUNT, seed=3)) for kind in drawer.kinds}
        for part, drawer in drawers.items()
    }


@pytest.fixture(scope="session")
def rows(drawn: Mapping[Name, Rows]) -> Rows:
    """Of both parts, by kind."""
    return {kind: [*drawn["train"][kind], *drawn["eval"].get(kind, ())] for kind in drawn["train"]}
