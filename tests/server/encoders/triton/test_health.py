"""When what was seen of a model in Triton is enough to load it anew."""

import pytest

from gradewire_server.encoders.triton.health import FailureEvidence, ModelHealth
from gradewire_server.triton.counts import Counts
from gradewire_server.triton.errors import Fault


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
def test_evidence_has_to_go_on(at_s: list[float], *, enough: bool) -> None:
    now_s = 0.0
    evidence = FailureEvidence(lambda: now_s)
    for now_s in at_s:  # noqa: B007 - the clock
        evidence.add()
    assert evidence.lasting is enough
    assert evidence
    now_s += 11.0
    assert not evidence
    assert not evidence.lasting
    evidence.clear()
    assert not evidence


def test_a_model_is_stuck_only_where_nothing_at_all_is_computed() -> None:
    health = ModelHealth()
    for completed in (7, 7, 8, 8, None, 8, 8):
        health.unanswered(completed)
        assert not health.stuck
    assert not health.unanswered(8)
    assert health.stuck
    health.computed()
    assert not health.stuck


def test_a_model_that_is_gone_shows_no_signs() -> None:
    health = ModelHealth()
    health.note(Fault.FAILED)
    assert health.evidence
    health.note(Fault.NOT_READY)
    assert not health.evidence
    assert not health.missing, "somebody may be loading it"


@pytest.mark.parametrize("between", [(), (None,), (None, None)])
@pytest.mark.parametrize("later", [Counts(4, 0), Counts(600, 0), Counts(4, 9)])
def test_a_count_that_falls_ends_all_signs_whatever_was_not_told_in_between(
    later: Counts, between: tuple[None, ...]
) -> None:
    health = ModelHealth()
    health.note(Fault.FAILED)
    for counts in (Counts(500, 3), *between, Counts(503, 4)):
        health.counted(counts)
        assert health.evidence
    health.counted(later)
    assert not health.evidence
