"""Metrics that got another name are found under the old one."""

import unicodedata
from random import Random
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_proto import wire_rules
from gradewire_proto.v1 import references_pb2, types_pb2
from gradewire_proto.wire_rules import (
    FORMER_NAMES,
    MAX_MARKS,
    Backoff,
    TooManyMarksError,
    current,
    digest_entries,
    has_long_run,
    name_set,
    nfc,
    split_pin,
)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("calibrated", "correctness"),
        ("calibrated/2?confidence=0.9&model=m@0123", "correctness/2?confidence=0.9&model=m@0123"),
        ("calibrated.score", "correctness.score"),
        ("correctness", "correctness"),
        ("smile:v1", "smile:v1"),
        ("calibrated_by_hand", "calibrated_by_hand"),
        ("uncalibrated", "uncalibrated"),
        ("smile?note=calibrated", "smile?note=calibrated"),
        ("", ""),
    ],
)
def test_the_name_in_front_is_that_of_now(written: str, read: str) -> None:
    assert current(written) == read


def test_the_names_of_now_are_metrics_and_the_former_ones_are_none() -> None:
    metrics = types_pb2.MetricSpec.DESCRIPTOR.fields_by_name
    assert all(name in metrics for name in FORMER_NAMES.values())
    assert not any(name in metrics for name in FORMER_NAMES)


# Marks of three classes, one that is two marks, one without a class, and what may stand around them.
PIECES = st.sampled_from(
    ["a", "é", "\u0301", "\u0316", "\u0344", "\u0f73", "\U0001d165", "\u09be", "🎉", "—", "漢", " ", "\u200b"]
)
RUNS = st.lists(st.builds(str.__mul__, PIECES, st.integers(1, 45)), max_size=6).map("".join)


@given(RUNS)
def test_texts_are_refused_exactly_for_marks_in_a_row(text: str) -> None:
    longest = row = 0
    for character in text:
        row = row + 1 if unicodedata.category(character).startswith("M") else 0
        longest = max(longest, row)
    assert has_long_run(text) == (longest > MAX_MARKS)
    if longest <= MAX_MARKS:
        assert nfc(text) == unicodedata.normalize("NFC", text)


def test_whatever_normalising_sorts_counts_as_a_mark() -> None:
    for code in range(0x110000):
        if unicodedata.combining(unicodedata.normalize("NFD", chr(code))[0]):
            assert has_long_run(chr(code) * (MAX_MARKS + 1)), hex(code)


@pytest.mark.parametrize(
    "text", ["a" + "\u0301" * 50_000 + "\u0316" * 50_000, "🎉" * 40 + "\u0f73" * 50_000, "\u0344" * 50_000]
)
def test_marks_without_end_are_never_normalised(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def normalize(form: str, text: str) -> str:
        raise AssertionError(form, len(text))

    monkeypatch.setattr(wire_rules, "normalize", normalize)
    with pytest.raises(TooManyMarksError, match="30 combining marks"):
        nfc(text)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=4)
ENTRIES = st.lists(
    st.builds(
        references_pb2.ReferenceEntry,
        question=TEXTS,
        references=st.lists(TEXTS, max_size=3),
        synthetic_answers=st.lists(TEXTS, max_size=3),
    ),
    max_size=3,
)


@given(ENTRIES, ENTRIES)
def test_different_content_gives_different_names(
    one: list[references_pb2.ReferenceEntry], other: list[references_pb2.ReferenceEntry]
) -> None:
    def normalised(sets: list[references_pb2.ReferenceEntry]) -> list[str]:
        return [normalize("NFC", str(entry)) for entry in sets]

    if one == other:
        assert name_set(one) == name_set(other)
    else:
        assert name_set(one) != name_set(other) or normalised(one) == normalised(other)


@given(ENTRIES)
def test_the_name_follows_the_content(entries: list[references_pb2.ReferenceEntry]) -> None:
    name = name_set(entries)
    assert len(name) == 32
    assert name == name_set(iter(entries))
    assert name != name_set([*entries, references_pb2.ReferenceEntry()])
    assert name != name_set(entries, ("1" * 64, "2" * 64)) != name_set(entries, ("1" * 64, "3" * 64))
    if entries and entries[0].question:
        moved = references_pb2.ReferenceEntry(references=[entries[0].question, *entries[0].references])
        assert name != name_set([moved, *entries[1:]])


def test_names_count_texts_as_the_server_sees_them() -> None:
    composed = references_pb2.ReferenceEntry(references=["caf\u00e9"])
    combining = references_pb2.ReferenceEntry(references=["cafe\u0301"])
    assert name_set([composed]) == name_set([combining])


def test_the_name_stays_what_it_is() -> None:
    entry = references_pb2.ReferenceEntry(question="what?", references=["a cat"], synthetic_answers=["It is a cat."])
    assert name_set([entry]) == "e6deed877123a01eef079be9bdc28d15"
    assert name_set([entry], ("1" * 64, "2" * 64)) == "3fd82e689fe3485c9b14be11529c1ce2"


@given(ENTRIES, st.randoms(use_true_random=False))
def test_a_corpus_has_one_digest_whatever_its_order(entries: list[references_pb2.ReferenceEntry], draw: Random) -> None:
    shuffled = [*entries, *entries[:1]]
    draw.shuffle(shuffled)
    for entry in shuffled:
        references = list(entry.references)
        draw.shuffle(references)
        entry.references[:] = [normalize("NFD", text) for text in (*references, *references[:1])]
    assert digest_entries(shuffled) == digest_entries(entries)


@given(ENTRIES, ENTRIES)
def test_another_corpus_has_another_digest(
    one: list[references_pb2.ReferenceEntry], other: list[references_pb2.ReferenceEntry]
) -> None:
    def content(entries: list[references_pb2.ReferenceEntry]) -> set[tuple[str, frozenset[str]]]:
        return {
            (normalize("NFC", entry.question), frozenset(normalize("NFC", text) for text in entry.references))
            for entry in entries
        }

    assert (digest_entries(one) == digest_entries(other)) == (content(one) == content(other))


@pytest.mark.parametrize(
    ("written", "name", "digest"),
    [
        ("prod", "prod", ""),
        ("prod@0123456789AB", "prod", "0123456789ab"),
        ("a@b@01234567", "a@b", "01234567"),
        ("prod@0123456", "prod@0123456", ""),
        ("prod@" + "0" * 33, "prod@" + "0" * 33, ""),
        ("prod@nothexat", "prod@nothexat", ""),
        ("@01234567", "", "01234567"),
        ("", "", ""),
    ],
)
def test_a_digest_behind_a_name(written: str, name: str, digest: str) -> None:
    assert split_pin(written) == (name, digest)


@pytest.mark.parametrize("text", ["@" * 10_000_000, "a" * 10_000_000 + "@12345678", "é" * 300])
def test_what_is_too_long_to_be_a_name_is_not_searched_for_a_digest(text: str) -> None:
    assert split_pin(text) == (text, "")


def test_the_longest_name_may_have_the_longest_digest() -> None:
    assert split_pin("n" * 256 + "@" + "0" * 32) == ("n" * 256, "0" * 32)


@pytest.mark.parametrize(("failures", "wait_s"), [(1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (6, 8.0), (10_000, 8.0)])
def test_waits_double_up_to_a_bound(failures: int, wait_s: float) -> None:
    assert Backoff(0.5, 8.0, (1.0, 1.0)).wait_s(failures) == wait_s
    assert Backoff(0.5, 8.0, (1.0, 1.0)).wait_s(failures, 1.5) == min(wait_s, 1.5)


@given(st.integers(1, 100))
def test_waits_are_spread(failures: int) -> None:
    assert 0 <= Backoff(1.0, 4.0).wait_s(failures) <= min(2.0 ** (failures - 1), 4.0)
    assert 0.8 <= Backoff(1.0, 1.0, (0.8, 1.2)).wait_s(failures) <= 1.2
