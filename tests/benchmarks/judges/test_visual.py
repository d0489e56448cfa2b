"""The visual questions are what examples/README.md says, and distinct references are each answer once."""

import re
from collections import Counter

import pytest
from benchmarks.common.rows import read_lines
from benchmarks.judges.agreement import ROOT
from benchmarks.judges.visual import BY_GROUP, JUDGED, PLAIN, ROWS, distinct
from sklearn.metrics import cohen_kappa_score

from gradewire.metrics.choice import MetricDefaults, choose_metrics

GROUPS = {
    *("several_right_answers", "over_specified", "under_specified", "synonym", "broad_attribute"),
    *("ambiguous_object", "negation", "number", "colour", "wrong"),
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    return read_lines(ROWS)


def test_every_row_is_whole(rows: list[dict[str, object]]) -> None:
    assert [row["id"] for row in rows] == [f"visual-{place:03d}" for place in range(1, 401)]
    for row in rows:
        votes, captions, labels = row["references"], row["captions"], row["labels"]
        assert isinstance(votes, list)
        assert isinstance(captions, list)
        assert isinstance(labels, list)
        assert len(votes) == 10
        assert 1 <= len(captions) <= 2
        assert all(isinstance(text, str) and text.strip() for text in (*votes, *captions))
        assert all(str(row[name]).strip() for name in ("question", "prediction", "picture"))
        assert (len(labels), {*labels} | {row["label"]}) == (2, {*labels})
        assert row["label"] in {0, 1}


def test_halves_have_the_same_failure_modes_and_no_question_in_common(rows: list[dict[str, object]]) -> None:
    counts = Counter((row["half"], row["group"]) for row in rows)
    assert counts == {(half, group): 20 for half in ("development", "held_out") for group in GROUPS}
    questions = {half: {row["question"] for row in rows if row["half"] == half} for half in ("development", "held_out")}
    assert questions["development"].isdisjoint(questions["held_out"])
    for half in ("development", "held_out"):
        right = sum(row["label"] == 1 for row in rows if row["half"] == half)
        assert 80 <= right <= 120


def test_the_passes_agree_as_far_as_the_page_says(rows: list[dict[str, object]]) -> None:
    first, second = zip(*(row["labels"] for row in rows), strict=True)  # type: ignore[misc]
    page = " ".join((ROOT / "examples/README.md").read_text("utf-8").split())
    said = re.search(r"They agree on (\d+) \(Cohen's κ \.(\d\d)\)", page)
    assert said is not None
    assert int(said[1]) == sum(one == other for one, other in zip(first, second, strict=True))
    assert int(said[2]) == round(100 * cohen_kappa_score(first, second))


def test_distinct_references_keep_their_order_and_first_writing() -> None:
    assert distinct(["Red", "blue", "red", "dark  red", "dark red", "BLUE"]) == ["Red", "blue", "dark  red"]


def test_what_is_told_by_failure_mode_is_scored() -> None:
    labels = {
        label for metrics in (PLAIN, JUDGED) for label in choose_metrics(",".join(metrics), MetricDefaults()).labels
    }
    assert set(BY_GROUP) <= labels
