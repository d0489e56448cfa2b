"""Drawn rows of every kind of both parts, over all of WordNet."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import pytest

from gradewire_train.graded.drawing import Drawer
from gradewire_train.graded.parts import Name
from gradewire_train.graded.wording import DrawnRow
from gradewire_train.material import GRADED
from gradewire_train.texts.lexicon import Lexicon

COUNT = 20
MANY = 120
Rows = Mapping[str, Sequence[DrawnRow]]
Many = Callable[[str], Sequence[DrawnRow]]

LEAD = re.compile(
    r"^(?:As far as I know|The text says that|I read that|According to the notes|From what I understood"
    r"|It turned out that|If I recall it well|Everyone agrees that|One thing is clear|The report states"
    r"|In the end)[,:]? "
)


def stated(row: DrawnRow) -> str:
    """The answer without filler sentences, and without the words before a statement."""
    text = row.drawn.prediction
    for remark in GRADED["remarks"]:
        text = text.replace(remark, "")
    return LEAD.sub("", text.strip())


def shared(row: DrawnRow) -> float:
    """The part of the reference's words that are in the answer."""
    reference, answer = (
        set(re.findall(r"\w+", text.lower())) for text in (row.drawn.references[0], row.drawn.prediction)
    )
    return len(reference & answer) / len(reference)


@pytest.fixture(scope="session")
def drawers(lexicon: Lexicon) -> Mapping[Name, Drawer]:
    parts: tuple[Name, Name] = ("train", "eval")
    return {part: Drawer(lexicon, part) for part in parts}


@pytest.fixture(scope="session")
def drawn(drawers: Mapping[Name, Drawer]) -> Mapping[Name, Rows]:
    return {
        part: {kind: list(drawer.rows(kind, COUNT, seed=3)) for kind in drawer.kinds}
        for part, drawer in drawers.items()
    }


@pytest.fixture(scope="session")
def rows(drawn: Mapping[Name, Rows]) -> Rows:
    """Of both parts, by kind."""
    return {kind: [*drawn["train"][kind], *drawn["eval"].get(kind, ())] for kind in drawn["train"]}


@pytest.fixture(scope="session")
def many(drawers: Mapping[Name, Drawer]) -> Many:
    """More rows of a kind, of both parts: enough that a test's own parser reads some of them."""
    return cache(lambda kind: [row for drawer in drawers.values() for row in drawer.rows(kind, MANY, seed=4)])
