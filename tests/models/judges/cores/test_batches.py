"""Questions in batches over a tiny judge's real graph: the same answers alone, together and after failures."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.judges.build.conftest import judge_repository, qwen2, tiny_judges
from tests.models.judges.build.tiny_judges import vocabulary
from tests.support.examples import example_count

from gradewire_models.judges.cores.batches import BatchedCore, BatchLimits
from gradewire_models.judges.cores.int8 import Int8Core
from gradewire_models.judges.cores.rows import Core, CoreError, CoreLimits, RowResult, Run
from gradewire_models.judges.cores.wire import Question
from gradewire_models.judges.repository import load_judge

__all__ = ["judge_repository", "qwen2", "tiny_judges"]  # fixtures

IDS = st.lists(st.integers(0, len(vocabulary()) - 1), max_size=12).map(tuple)
LABELS = st.sets(st.integers(0, len(vocabulary()) - 1), max_size=3).map(tuple)
PREFIXES = ((), (3, 4, 5, 6, 7), tuple(range(40)))
QUESTION = st.builds(
    Question,
    st.sampled_from(PREFIXES),
    st.tuples(st.integers(0, 9)).flatmap(lambda first: IDS.map(first.__add__)),
    LABELS,
    IDS,
)


class Watched(Core):
    """A core whose runs are remembered, and which fails on a token of a test's choice."""

    def __init__(self, core: Core, *, max_row_tokens: int = 256) -> None:
        self._core = core
        self._limits = CoreLimits(max_row_tokens, 64, 64, 64)
        self.runs: list[Run] = []
        self.poison = -1

    @property
    def limits(self) -> CoreLimits:
        return self._limits

    def run(self, run: Run) -> list[RowResult]:
        self.runs.append(run)
        if any(self.poison in row.ids for row in run.rows):
            raise RuntimeError("indices element out of data bounds")
        return self._core.run(run)


@pytest.fixture(scope="module")
def graph(judge_repository: Path) -> Int8Core:
    return Int8Core(load_judge(judge_repository, "tiny-qwen2").path("int8"), threads=1)


@pytest.fixture
def core(graph: Int8Core) -> Iterator[Watched]:
    graph._states.clear()
    yield Watched(graph)
    graph._states.clear()


def alone(graph: Int8Core, question: Question) -> RowResult:
    graph._states.clear()
    (result,) = BatchedCore(graph, BatchLimits()).answer([question])
    assert isinstance(result, RowResult)
    return result


@settings(deadline=None, max_examples=example_count(25))
@given(batches=st.lists(st.lists(QUESTION, min_size=1, max_size=5), min_size=1, max_size=3))
def test_a_question_gets_the_same_answer_in_any_company(graph: Int8Core, batches: list[list[Question]]) -> None:
    expected = [[alone(graph, question) for question in batch] for batch in batches]
    graph._states.clear()
    together = BatchedCore(graph, BatchLimits(max_run_tokens=20, max_prefixes=1, max_begun_tokens=15))
    assert [together.answer(batch) for batch in batches] == expected


def test_a_prefix_is_computed_once_and_its_state_is_reused(core: Watched) -> None:
    batched = BatchedCore(core, BatchLimits())
    for number in range(3):
        batched.answer([Question(PREFIXES[2], (number, place), (1, 2)) for place in range(2)])
    assert [len(run.rows) for run in core.runs] == [1, 2, 2, 2]
    assert core.runs[0].tokens == len(PREFIXES[2])


def test_runs_keep_to_the_limit_of_tokens_but_a_single_row_may_be_longer(core: Watched) -> None:
    batched = BatchedCore(core, BatchLimits(max_run_tokens=7))
    batched.answer([Question((), tuple(range(length)), (1, 2)) for length in (3, 4, 9, 2)])
    assert [[len(row.ids) for row in run.rows] for run in core.runs] == [[3, 4], [9], [2]]


def test_a_long_item_is_computed_in_rows_and_its_state_is_not_kept_for_a_choice(graph: Int8Core) -> None:
    graph._states.clear()
    short_rows = Watched(graph, max_row_tokens=4)
    batched = BatchedCore(short_rows, BatchLimits())
    (result,) = batched.answer([Question((), tuple(range(10)), (1, 2))])
    assert [[len(row.ids) for row in run.rows] for run in short_rows.runs] == [[4], [4], [2]]
    assert isinstance(result, RowResult)
    assert sum(result.probabilities) == pytest.approx(1)
    batched.answer([Question((), (1,), (1, 2))])  # a state is dropped with the next run
    assert graph._states == {}


def test_an_answer_is_written_token_by_token_over_a_kept_state(graph: Int8Core, core: Watched) -> None:
    batched = BatchedCore(core, BatchLimits())
    written: tuple[int, ...] = ()
    for _ in range(5):
        (result,) = batched.answer([Question(PREFIXES[1], (8, 9), (), written)])
        assert isinstance(result, RowResult)
        written = (*written, result.next_token)
    assert [run.tokens for run in core.runs] == [5, 2, 1, 1, 1, 1]
    # A model that has forgotten all states, like one that was restarted, goes on with the same token.
    assert alone(graph, Question(PREFIXES[1], (8, 9), (), written[:4])).next_token == written[4]


def test_an_answer_whose_state_was_lost_costs_one_row_for_all_its_tokens(core: Watched) -> None:
    (result,) = BatchedCore(core, BatchLimits()).answer([Question((), (8, 9), (), (1, 2, 3, 4))])
    assert isinstance(result, RowResult)
    assert [run.tokens for run in core.runs] == [2, 4]


def test_writers_that_take_turns_find_their_states_even_if_not_all_have_room(core: Watched) -> None:
    batched = BatchedCore(core, BatchLimits(max_begun_tokens=60))
    written: list[tuple[int, ...]] = [()] * 8
    for _ in range(5):
        for writer in range(8):
            (result,) = batched.answer([Question((), (writer, *range(9)), (), written[writer])])
            assert isinstance(result, RowResult)
            written[writer] += (result.next_token,)
    # Four answers of up to 14 tokens stay. If the oldest one made room, all would be computed again each time.
    assert sum(run.tokens for run in core.runs) <= 4 * 14 + 4 * (10 + 11 + 12 + 13 + 14)


def test_answers_that_ended_or_were_abandoned_make_room(graph: Int8Core, core: Watched) -> None:
    now = [0.0]
    (result,) = BatchedCore(core, BatchLimits()).answer([Question((), (8, 9))])
    assert isinstance(result, RowResult)
    graph._states.clear()
    limits = BatchLimits(max_begun_idle_s=60, ends=frozenset({result.next_token}))
    batched = BatchedCore(core, limits, clock=lambda: now[0])
    batched.answer([Question((), (8, 9))])  # ends at once
    for number in range(5):
        batched.answer([Question((), (number, 3), (), (5,))])  # the callers leave
        now[0] += 5
    batched.answer([Question((), (1,), (1, 2))])
    assert 1 <= len(graph._states) <= 5
    now[0] += 60
    batched.answer([Question((), (1,), (1, 2))])
    assert graph._states == {}


def test_states_that_are_not_used_any_more_are_dropped(graph: Int8Core, core: Watched) -> None:
    batched = BatchedCore(core, BatchLimits(max_prefixes=2, max_begun_tokens=10))
    for number in range(20):
        batched.answer([Question((number,), (1, 2, 3, 4)), Question((number,), (5,), (1, 2))])
    batched.answer([Question((), (1,), (1, 2))])
    # Two prefixes, and answers of 4 tokens each within 10 tokens.
    assert len(graph._states) <= 4


def test_the_same_answer_asked_twice_at_once_leaves_one_state(graph: Int8Core, core: Watched) -> None:
    batched = BatchedCore(core, BatchLimits())
    first, second = batched.answer([Question((), (1, 2)), Question((), (1, 2))])
    assert first == second
    batched.answer([Question((), (3,), (1, 2))])
    assert len(graph._states) == 1


def test_a_question_that_fails_leaves_its_neighbours_their_answers(graph: Int8Core, core: Watched) -> None:
    good = [Question(PREFIXES[1], (number, 2), (1, 2)) for number in range(3)]
    expected = [alone(graph, question) for question in good]
    graph._states.clear()
    core.poison = 77
    batched = BatchedCore(core, BatchLimits())
    bad = Question(PREFIXES[1], (4, 77), (1, 2))
    found = batched.answer([good[0], bad, *good[1:]])
    assert [found[0], *found[2:]] == expected
    assert isinstance(found[1], CoreError)
    assert "out of data bounds" in str(found[1])


def test_a_prefix_that_fails_is_tried_again_later(graph: Int8Core, core: Watched) -> None:
    core.poison = PREFIXES[1][0]
    batched = BatchedCore(core, BatchLimits())
    question = Question(PREFIXES[1], (1,), (1, 2))
    assert isinstance(batched.answer([question])[0], CoreError)
    core.poison = -1
    assert batched.answer([question]) == [alone(graph, question)]


def test_answers_depend_on_the_prefix(graph: Int8Core) -> None:
    one, other = (alone(graph, Question(prefix, (1, 2), (3, 4))) for prefix in PREFIXES[1:])
    assert np.abs(np.array(one.probabilities) - np.array(other.probabilities)).max() > 1e-4
