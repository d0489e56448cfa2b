"""Items and results cross between wire and domain without loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto.v1 import references_pb2, types_pb2
from gradewire_server.domain import result as domain
from gradewire_server.domain.item import Item
from gradewire_server.domain.parts import SmileParts
from gradewire_server.domain.result import CacheHits, Failure, MetricResult, ScoredResult, Status, Timing
from gradewire_server.requests.convert import fill_result, read_entry, read_item, read_reference_set, reply_id
from gradewire_server.requests.errors import InvalidRequestError
from gradewire_server.settings.limits import Limits

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@pytest.mark.parametrize(("ours", "wires"), [(domain.Status, types_pb2.Status), (domain.Warning, types_pb2.Warning)])
def test_numbers_equal_the_wires(ours: type[Status], wires: object) -> None:
    items = dict(wires.items())  # type: ignore[attr-defined]
    prefix = ours.__name__.upper()
    assert {f"{prefix}_{value.name}": value.value for value in ours} | {f"{prefix}_UNSPECIFIED": 0} == items


def test_every_text_is_normalised_once_and_for_all() -> None:
    loose = "cafe\u0301"
    message = types_pb2.Item(
        id=loose,
        question=loose,
        references=[loose],
        prediction=loose,
        synthetic_answers=[loose],
        caption=loose,
        group=loose,
        captions=["\t", loose],
    )
    tight = "caf\u00e9"
    expected = Item(tight, tight, (tight,), tight, (tight,), (tight, tight), tight)
    assert read_item(message, Limits(), check_bytes=True) == expected


@given(prediction=TEXT, references=st.lists(TEXT, max_size=3), limit=st.integers(1, 60))
def test_an_item_is_refused_exactly_when_its_bytes_exceed_the_limit(
    prediction: str, references: list[str], limit: int
) -> None:
    message = types_pb2.Item(prediction=prediction, references=references)
    size = sum(len(text.encode()) for text in (prediction, *references))
    item = read_item(message, Limits(max_item_bytes=limit), check_bytes=True)
    assert isinstance(item, Failure) == (size > limit)
    if isinstance(item, Failure):
        assert item.status is Status.INVALID_INPUT
        assert str(size) in item.message


def test_captions_stand_behind_the_caption_in_their_order() -> None:
    item = read_item(types_pb2.Item(caption="b", captions=["c", " ", "a"]), Limits(), check_bytes=True)
    assert isinstance(item, Item)
    assert item.captions == ("b", "c", "a")


def test_pictures_beyond_all_reason_are_refused_before_they_are_taken_apart() -> None:
    few, many = (types_pb2.Item(images=[types_pb2.Image(data=b"a")] * count) for count in (1024, 1025))
    assert isinstance(read_item(few, Limits(), check_bytes=False), Item)
    refused = read_item(many, Limits(), check_bytes=False)
    assert isinstance(refused, Failure)
    assert (refused.status, refused.message.split(":")[0]) == (Status.INVALID_INPUT, "images")


def test_too_many_references_are_refused() -> None:
    limits = Limits(max_references_per_item=2)
    for refused in (
        read_item(types_pb2.Item(references=["a"] * 3), limits, check_bytes=False),
        read_entry(references_pb2.ReferenceEntry(references=["a"] * 3), limits),
    ):
        assert refused == Failure(Status.INVALID_INPUT, "references: 3 of them, at most 2 are allowed")


@pytest.mark.parametrize(
    "field", ["id", "question", "prediction", "caption", "group", "references", "synthetic_answers", "captions"]
)
def test_the_field_with_too_many_marks_is_named(field: str) -> None:
    evil = "a" + "\u0301" * 31
    several = field in {"references", "synthetic_answers", "captions"}
    item = read_item(types_pb2.Item(**{field: ["fine", evil] if several else evil}), Limits(), check_bytes=True)  # type: ignore[arg-type]
    assert item == Failure(
        Status.INVALID_INPUT, f"{field}{'[1]' if several else ''}: more than 30 combining marks in a row"
    )


def test_a_result_carries_all_it_has() -> None:
    parts = SmileParts(0.1, 0.2, 0.3, 0.4, "big cat", 4, correct=True, harmonic_mean=0.5)
    result = MetricResult(0.75, warnings=(domain.Warning.TRUNCATED,), matched_reference=0, parts=parts)
    scored = ScoredResult(result, CacheHits(1, 2, 3, 4, 5), Timing(0.1, 0.2, 0.3, 0.4))
    message = types_pb2.MetricResult()
    fill_result(message, 2, scored, diagnostics=True)
    assert message == types_pb2.MetricResult(
        metric_index=2,
        score=0.75,
        status=types_pb2.STATUS_OK,
        warnings=[types_pb2.WARNING_TRUNCATED],
        matched_reference=0,
        smile=types_pb2.SmileParts(
            sentence=0.1,
            keyword=0.2,
            exact=0.3,
            lexical=0.4,
            best_window="big cat",
            bin=4,
            correct=True,
            harmonic_mean=0.5,
        ),
        cache_hits=types_pb2.CacheHits(memory=1, disk=2, redis=3, joined=4, computed=5),
        timing=types_pb2.Timing(queue_s=0.1, cache_s=0.2, tokenize_s=0.3, inference_s=0.4),
    )


def test_a_failure_has_no_score_and_a_zero_is_a_score() -> None:
    failed, zero = types_pb2.MetricResult(), types_pb2.MetricResult()
    failure = Failure(Status.TIMEOUT, "late")
    fill_result(failed, 0, ScoredResult(MetricResult.failed(failure)), diagnostics=False)
    fill_result(zero, 0, ScoredResult(MetricResult(0.0)), diagnostics=False)
    assert not failed.HasField("score")
    assert (failed.status, failed.message) == (types_pb2.STATUS_TIMEOUT, "late")
    assert not failed.HasField("cache_hits")
    assert zero.HasField("score")
    assert zero.score == 0
    assert not zero.HasField("matched_reference")


def test_the_name_of_a_set_is_normalised_and_bounded() -> None:
    assert read_reference_set("e\u0301") == "\u00e9"
    for bad in ("x" * 257, "\u0301" * 31):
        with pytest.raises(InvalidRequestError, match="reference_set"):
            read_reference_set(bad)


def test_an_id_has_a_bound_and_a_longer_one_comes_back_cut() -> None:
    fits, long = types_pb2.Item(id="é" * 512), types_pb2.Item(id="é" * 512 + "x", references=["a"])
    assert isinstance(read_item(fits, Limits(), check_bytes=False), Item)
    assert reply_id(fits) == fits.id
    assert read_item(long, Limits(), check_bytes=False) == Failure(
        Status.INVALID_INPUT, "id: has 1025 bytes, at most 1024 are allowed"
    )
    assert reply_id(long) == "é" * 79 + "…"


def test_a_text_among_the_parts_has_a_bound() -> None:
    message = types_pb2.MetricResult()
    parts = SmileParts(0, 0, 0, 0, best_window="w" * 100_000, bin=0, correct=False)
    fill_result(message, 0, ScoredResult(MetricResult(0.5, parts=parts)), diagnostics=False)
    assert message.smile.best_window == "w" * 8191 + "…"


def test_a_set_name_is_measured_as_it_is_used() -> None:
    grows = "\U0001d160" * 30  # 120 bytes, and three times as many in NFC
    with pytest.raises(InvalidRequestError, match="reference_set: has 360 bytes, a name has at most 256"):
        read_reference_set(grows)
