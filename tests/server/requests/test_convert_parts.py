"""Parts of every kind, and verdicts, from a metric's result to what a user of the client reads."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire import MetricScore, Status
from gradewire._calls.score import decode_results
from gradewire.metrics.choice import MetricDefaults, choose_metrics
from gradewire.results import PART_FIELDS
from gradewire_proto.parts import PART_TYPES, JudgeParts, Parts
from gradewire_proto.v1 import types_pb2
from gradewire_server.domain.items import CacheHits, MetricResult, ScoredResult, Timing
from gradewire_server.requests.convert import fill_result

KINDS: tuple[type[Any], ...] = get_args(Parts)
CHOICE = choose_metrics("smile", MetricDefaults())
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    float: st.floats(allow_nan=False, allow_infinity=False),
    float | None: st.none() | st.floats(allow_nan=False, allow_infinity=False),
    int: st.integers(0, 2**32 - 1),
    int | None: st.integers(1, 2**31),
    bool: st.booleans(),
    bool | None: st.none() | st.booleans(),
    str: st.text(max_size=20),
    str | None: st.none() | st.text(max_size=20),
    tuple[str, ...]: st.lists(st.text(max_size=8), max_size=4).map(tuple),
    Mapping[str, str]: st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=4),
    Mapping[str, float]: st.dictionaries(
        st.text(max_size=8), st.floats(allow_nan=False, allow_infinity=False), max_size=4
    ),
    tuple[float, ...]: st.lists(st.floats(0, 10), max_size=4).map(tuple),
}


UNKNOWN: dict[str, Any] = {"prompt_tokens": None, "generated_tokens": None}
RULED: dict[str, Any] = {"decided_by": "rule", "prompt_tokens": 0, "generated_tokens": 0}


def read_by_the_client(result: MetricResult) -> MetricScore:
    """Over the wire and back."""
    message = types_pb2.MetricResult()
    fill_result(message, 0, ScoredResult(result, CacheHits(), Timing()), diagnostics=True)
    sent = types_pb2.MetricResult.FromString(message.SerializeToString())
    return decode_results(CHOICE, {}, 0, [sent])["smile"]


@st.composite
def parts(draw: st.DrawFn) -> Parts:
    """Any parts with any values."""
    kind = draw(st.sampled_from(KINDS))
    made: Parts = kind(**{name: draw(VALUES[hint]) for name, hint in get_type_hints(kind).items()})
    if isinstance(made, JudgeParts):
        # What a server does not tell is told by nobody; a rule reads nothing.
        told = draw(st.sampled_from([{"decided_by": "judge"}, {"decided_by": "judge", **UNKNOWN}, RULED]))
        made = replace(made, **told)
    return made


def test_server_wire_and_client_have_the_same_kinds_with_the_same_fields() -> None:
    on_wire = types_pb2.MetricResult.DESCRIPTOR.oneofs_by_name["parts"].fields
    assert list(PART_TYPES) == [field.name for field in on_wire]
    by_name = {kind.__name__: kind for kind in KINDS}
    assert set(by_name) == {kind.__name__ for kind in PART_TYPES.values()}
    for field in on_wire:
        mine = PART_TYPES[field.name]
        assert field.message_type is not None
        names = [each.name for each in field.message_type.fields]
        assert [each.name for each in fields(mine)] == names
        assert get_type_hints(by_name[mine.__name__]) == get_type_hints(mine)
        assert all(PART_FIELDS[name] == hint for name, hint in get_type_hints(mine).items())


@given(parts(), st.none() | st.booleans())
def test_nothing_is_lost_on_the_way_to_the_client(given_parts: Parts, correct: bool | None) -> None:  # noqa: FBT001 - drawn
    read = read_by_the_client(MetricResult(score=0.5, parts=given_parts, correct=correct))
    assert type(read.parts).__name__ == type(given_parts).__name__
    assert read.parts is not None
    assert asdict(read.parts) == asdict(given_parts)
    # A server from before the verdict of all metrics has SMILE's among its parts.
    assert read.correct == (getattr(given_parts, "correct", None) if correct is None else correct)
    row = read.to_dict()
    for name, value in asdict(given_parts).items():
        if name != "correct":
            assert row.get(name) == (list(value) if isinstance(value, tuple) else value), name


@pytest.mark.parametrize("correct", [True, False, None])
def test_a_verdict_needs_no_parts(correct: bool | None) -> None:  # noqa: FBT001 - a case
    read = read_by_the_client(MetricResult(score=1.0, correct=correct))
    assert (read.correct, read.parts) == (correct, None)
    assert ("correct" in read.to_dict()) == (correct is not None)


def test_a_failure_has_neither() -> None:
    message = types_pb2.MetricResult(
        status=types_pb2.STATUS_TIMEOUT, score=0.5, correct=True, rouge_l=types_pb2.RougeLParts(f1=1)
    )
    read = decode_results(CHOICE, {}, 0, [message])["smile"]
    assert (read.status, read.score, read.correct, read.parts) == (Status.TIMEOUT, None, None, None)
