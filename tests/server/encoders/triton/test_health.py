"""When what was seen of a model in Triton is enough to load it anew."""

import pytest

from gradewire_server.encoders.triton.health import Case, Signs
from gradewire_server.triton.counts import Counts
from gradewire_server.triton.errors import Kind


@pytest.mark.parametrize(
    ("at_s", "enough"),
    [
        ([0.0], False),
        ([0.0, 0.1, 0.2, 0.3], False),  # one hiccup, however many runs it hit
        ([0.0, 3.0], False),
        ([0.0, 1.1, 2.2], True),
        ([0.0, 9.0, 18.0], True),
        ([0.0, 11.0, 22.0, 33.0], False),  # rare ones are each the first
    ],
)
def test_signs_have_to_go_on(at_s: list[float], *, enough: bool) -> None:
    now_s = 0.0
    signs = Signs(lambda: now_s)
    for now_s in at_s:  # noqa: B007 - the clock
        signs.add()
    assert signs.last is enough
    assert signs
    now_s += 11.0
    assert not signs
    assert not signs.last
    signs.clear()
    assert not signs


def test_a_model_is_stuck_only_where_nothing_at_all_is_computed() -> None:
    case = Case()
    for completed in (7, 7, 8, 8, None, 8, 8):
        case.unanswered(completed)
        assert not case.stuck
    assert not case.unanswered(8)
    assert case.stuck
    case.computed()
    assert not case.stuck


def test_a_model_that_is_gone_shows_no_signs() -> None:
    case = Case()
    case.note(Kind.FAILED)
    assert case.signs
    case.note(Kind.NOT_READY)
    assert not case.signs
    assert not case.missing, "somebody may be loading it"


@pytest.mark.parametrize("between", [(), (None,), (None, None)])
@pytest.mark.parametrize("later", [Counts(4, 0), Counts(600, 0), Counts(4, 9)])
def test_a_count_that_falls_ends_all_signs_whatever_was_not_told_in_between(
    later: Counts, between: tuple[None, ...]
) -> None:
    case = Case()
    case.note(Kind.FAILED)
    for counts in (Counts(500, 3), *between, Counts(503, 4)):
        case.counted(counts)
        assert case.signs
    case.counted(later)
    assert not case.signs
