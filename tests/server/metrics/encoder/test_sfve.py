"""SFVE: both answers behind the question."""

import zlib
from typing import Any

import numpy as np
import pytest
from tests.support.engines.programs import Table, at

from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry, ResultWarning, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.domain.needs import Embed, Tier, Vectors
from gradewire_server.metrics.common import EncoderParameters
from gradewire_server.metrics.encoder.sfve import Sfve

Y, FAR, NEAR, NEAR_TOO = (f"Question: what? Answer: {answer}" for answer in ("y", "far", "near", "near too"))
PROBE = "Question: what? Answer: a"
VECTORS = {Y: at(0), NEAR: at(60), FAR: at(180), NEAR_TOO: at(-60), PROBE: at(0)}


def grade(*references: str, table: Table, question: str = "what?", prediction: str = "y") -> Any:
    return table.run(Sfve().score(Item("1", question, references, prediction), EncoderParameters("m"), NO_MODEL))


def test_the_closest_reference_behind_the_question() -> None:
    table = Table(VECTORS)
    result = grade("far", "near", "near too", table=table)
    assert result.score == pytest.approx(0.5, abs=1e-6)
    assert result.matched_reference == 1
    assert table.rounds == [(Embed("m", (Y,), Tier.PREDICTION), Embed("m", (FAR, NEAR, NEAR_TOO), Tier.REFERENCE))]


def test_a_blank_question_is_named() -> None:
    result = grade("near", table=Table(VECTORS), question=" \n")
    assert result.status is Status.INVALID_INPUT
    assert result.message.startswith("question")
    prepared = Table(VECTORS).run(Sfve().prepare(ReferenceEntry("", ("near",)), EncoderParameters()))
    assert prepared.status is Status.INVALID_INPUT


def test_a_cut_answer_is_a_warning() -> None:
    assert grade("near", table=Table(VECTORS, truncated=frozenset({Y}))).warnings == (ResultWarning.TRUNCATED,)


class Reader(Table):
    """Reads so many characters of a text: what it reads decides the vector."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.characters = characters

    def _answer(self, need: Any) -> Any:
        read = [text[: self.characters] for text in need.texts]
        vectors = [at(zlib.crc32(text.encode()) % 180) for text in read]
        cut = [len(text) > self.characters for text in need.texts]
        return Vectors(np.array(vectors, dtype=np.float32), np.array(cut))


CONTEXT = " ".join(f"fact{number} is known." for number in range(200))
ASKED = "Which river runs through it?"


@pytest.mark.parametrize("characters", [130, 256, 1_000])
def test_of_a_question_that_leaves_no_room_the_end_is_kept(characters: int) -> None:
    table = Reader(characters)
    results = [
        table.run(Sfve().score(Item("1", f"{CONTEXT} {ASKED}", ("the Loire",), said), EncoderParameters("m"), NO_MODEL))
        for said in ("the Loire", "the Rhine")
    ]
    right, wrong = results
    assert (right.status, right.score) == (Status.OK, pytest.approx(1.0))
    assert wrong.score < 1 - 1e-3  # not cut inside the question, where all answers are alike
    assert right.warnings == wrong.warnings == (ResultWarning.TRUNCATED,)
    first, second = table.rounds[-1]
    assert isinstance(first, Embed)
    assert isinstance(second, Embed)
    (text,) = first.texts
    assert text.endswith(f"{ASKED} Answer: the Rhine")
    assert text.partition("Question: ")[2].split()[0] in CONTEXT.split() + ASKED.split()  # from a word's begin on
    # Half is left, and a little more: an answer as long as what is kept is read to its end.
    kept = text.removeprefix("Question: ").partition(" Answer: ")[0]
    assert len(f"Question: {kept} Answer: {kept}") <= characters
    assert characters / 4 < len(text) <= characters
    # What is prepared is what scoring asks for.
    prepared = Reader(characters)
    entry = ReferenceEntry(f"{CONTEXT} {ASKED}", ("the Loire",))
    assert prepared.run(Sfve().prepare(entry, EncoderParameters("m"))) is None
    assert prepared.rounds[-1] == (second,)


def test_a_question_that_leaves_room_is_left_alone() -> None:
    """However little: what had a score keeps it."""
    table = Reader(len(PROBE))
    result = grade("near", "far", table=table, prediction="yes of course")
    assert result.warnings == (ResultWarning.TRUNCATED,)
    assert table.rounds[0][0].texts == ("Question: what? Answer: yes of course",)
    assert [need.texts for (need,) in table.rounds[1:]] == [(PROBE,)]


@pytest.mark.parametrize("question", ["x " * 40_000 + ASKED, "x" * 40_000 + " " + ASKED + " " * 40_000])
def test_a_question_of_any_length_is_cut_before_it_is_copied(question: str) -> None:
    table = Reader(400)
    result = table.run(Sfve().score(Item("1", question, ("a",) * 3, "a"), EncoderParameters("m"), NO_MODEL))
    assert (result.status, result.warnings) == (Status.OK, (ResultWarning.TRUNCATED,))
    assert max(len(text) for needs in table.rounds for need in needs for text in need.texts) < 50_000


def test_an_encoder_that_reads_next_to_nothing_leaves_no_room() -> None:
    result = grade("near", table=Reader(20), question=f"{CONTEXT} {ASKED}")
    assert result.status is Status.INVALID_INPUT
    assert result.message.startswith("question")
    prepared = Reader(20).run(Sfve().prepare(ReferenceEntry(CONTEXT, ("near",)), EncoderParameters()))
    assert prepared.status is Status.INVALID_INPUT


def test_bad_items_and_failures_have_a_status_and_no_score() -> None:
    assert grade(table=Table()).status is Status.INVALID_INPUT
    assert grade("near", table=Table(), prediction=" ").status is Status.EMPTY_PREDICTION
    failure = Failure(Status.TIMEOUT, "late")
    assert grade("near", table=Table(VECTORS, failure=failure)) == MetricResult.failed(failure)
    assert Table(failure=failure).run(Sfve().prepare(ReferenceEntry("q", ("x",)), EncoderParameters())) == failure


def test_prepare_asks_for_the_references_behind_the_question() -> None:
    table = Table(VECTORS)
    assert table.run(Sfve().prepare(ReferenceEntry("what?", ("near", "far")), EncoderParameters())) is None
    assert table.embedded == [{NEAR, FAR}]
