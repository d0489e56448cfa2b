"""The output file after any break: what was written stays, and a resumed run ends as a straight one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_cli.problems import InputError
from gradewire_cli.results.resumable_output import ResultsFile, encode_row, read_results
from gradewire_cli.rows.row import Row

LINES = {"smile": "smile:v1/1?model=m@0123456789ab&sentence_weight=0.3&synthetic=none"}


def row(index: int, content: str = "") -> Row:
    return Row(index, f"line {index + 1}", str(index), {}, "", f"digest {index} {content}")


def result(of: Row, status: str = "OK", line: str = LINES["smile"]) -> dict[str, Any]:
    score = {"score": of.index / 10 if status == "OK" else None, "status": status, "line": line}
    return {"id": of.id, "index": of.index, "scores": {"smile": score}, "digest": of.digest}


def run(path: Path, rows: list[Row], *, stop_after: int | None = None) -> int:
    """A resumed run in which every row scores OK; returns how many were scored and not found."""
    scored = 0
    with ResultsFile(path) as file:
        stream = iter(rows)
        pending = list(file.resume(stream, LINES, lambda *_: None))
        for each in [*pending, *stream]:
            if scored == stop_after:
                return scored
            waiting = file.waiting(each)
            scored += waiting is None
            file.write([waiting or result(each)])
        file.finish()
    return scored


def contents(path: Path) -> list[dict[str, Any]]:
    return [found for _, found in read_results(path)]


@given(
    kinds=st.lists(st.sampled_from(["done", "timeout", "unavailable", "invalid", "changed", "lost"]), max_size=12),
    behind=st.integers(0, 3),
    torn=st.integers(0, 40),
    stops=st.lists(st.integers(0, 4), max_size=3),
)
@settings(max_examples=example_count(200), deadline=None)
def test_any_state_of_the_file_ends_as_a_straight_run(
    kinds: list[str], behind: int, torn: int, stops: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("out") / "out.jsonl"
    rows = [row(index) for index in range(len(kinds) + behind)]
    statuses = {"timeout": "TIMEOUT", "unavailable": "UNAVAILABLE", "invalid": "INVALID_INPUT"}
    there = [
        result(row(index, "before" if kind == "changed" else ""), statuses.get(kind, "OK"))
        for index, kind in enumerate(kinds)
        if kind != "lost"
    ]
    last = encode_row(result(row(len(kinds))))
    path.write_bytes(b"".join(map(encode_row, there)) + last[: min(torn, len(last) - 1)])
    good = [kind for kind in kinds if kind in {"done", "invalid"}]
    if "changed" in kinds and not good:
        before = path.read_bytes()
        with pytest.raises(InputError, match="but none is in this input"):
            run(path, rows)
        assert (path.read_bytes(), list(path.parent.iterdir())) == (before, [path])
        return
    settled = ["INVALID_INPUT" if kind == "invalid" else "OK" for kind in kinds] + ["OK"] * behind
    straight = [result(each, status) for each, status in zip(rows, settled, strict=True)]
    scored = sum(run(path, rows, stop_after=stop) for stop in stops)
    scored += run(path, rows)
    assert contents(path) == straight
    assert scored == len(rows) - len(good), "nothing good is scored twice"
    aside = path.with_name("out.jsonl.resume")
    stale = [
        each for each, kind in zip(there, [kind for kind in kinds if kind != "lost"], strict=True) if kind == "changed"
    ]
    assert (contents(aside) if aside.exists() else []) == stale, "what fits no row of the input is not thrown away"
    assert sorted(path.parent.iterdir()) == [path, aside][: 1 + bool(stale)]


def test_good_rows_behind_a_failed_one_wait_in_a_file_beside(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    rows = [row(index) for index in range(4)]
    path.write_bytes(b"".join(map(encode_row, [result(rows[0]), result(rows[1], "TIMEOUT"), *map(result, rows[2:])])))
    assert run(path, rows, stop_after=0) == 0
    assert [found["index"] for found in contents(path)] == [0], "in order at all times"
    assert [found["index"] for found in contents(tmp_path / "out.jsonl.resume")] == [2, 3], "and nothing is lost"
    assert run(path, rows) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("smile:v1/1?model=m@ffffffffffff&sentence_weight=0.3&synthetic=none", "smile differs in model"),
        ("smile:v1/1?model=m@0123456789ab&sentence_weight=0.5&synthetic=none", "smile differs in sentence_weight"),
        ("smile:fast/1?model=m@0123456789ab&sentence_weight=0.3&synthetic=none", "smile differs in preset"),
        (f"{LINES['smile']}&reference_set=a", "smile differs in reference_set"),
        ("smile:v1/2?model=m@0123456789ab&sentence_weight=0.3&synthetic=inline", "differs in synthetic and version"),
    ],
)
def test_other_definitions_are_refused_and_named(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    before = encode_row(result(row(0), line=line))
    path.write_bytes(before)
    with pytest.raises(InputError, match=said):
        run(path, [row(0)])
    assert path.read_bytes() == before


def test_other_metrics_are_refused_and_named(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(encode_row({"id": "0", "index": 0, "scores": {"sbert": {"status": "OK"}}, "digest": "d"}))
    with pytest.raises(InputError, match="has the metrics sbert, but this run computes smile"):
        run(path, [row(0)])


def test_another_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("dear diary\nnot yours\n")
    with pytest.raises(InputError, match="line 1 is not an output row"):
        run(path, [row(0)])
    assert path.read_text() == "dear diary\nnot yours\n"


def test_more_rows_than_the_input_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"".join(encode_row(result(row(index))) for index in range(3)))
    with pytest.raises(InputError, match="more rows than the input"):
        run(path, [row(0)])
    assert len(contents(path)) == 3


@pytest.mark.parametrize("aside", [False, True])
def test_rows_of_another_input_are_refused_and_left_alone(tmp_path: Path, *, aside: bool) -> None:
    path = tmp_path / ("out.jsonl.resume" if aside else "out.jsonl")
    before = b"".join(encode_row(result(row(index, "other"))) for index in range(3))
    path.write_bytes(before)
    with pytest.raises(InputError, match="has 3 finished rows, but none is in this input"):
        run(tmp_path / "out.jsonl", [row(index) for index in range(5)])
    assert (list(tmp_path.iterdir()), path.read_bytes()) == ([path], before)


def test_a_shorter_input_behind_a_failed_row_is_refused_where_its_length_is_known(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    rows = [row(index) for index in range(6)]
    before = b"".join(encode_row(result(each, "TIMEOUT" if each.index == 1 else "OK")) for each in rows)
    path.write_bytes(before)
    with ResultsFile(path) as file, pytest.raises(InputError, match=r"has at least 6 rows, but the input has only 4"):
        file.resume(iter(rows[:4]), LINES, lambda *_: None, input_rows=4)
    assert (list(tmp_path.iterdir()), path.read_bytes()) == ([path], before)


def test_rows_that_the_input_has_no_more_stay_beside(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    rows = [row(index) for index in range(6)]
    path.write_bytes(b"".join(encode_row(result(each, "TIMEOUT" if each.index == 1 else "OK")) for each in rows))
    assert run(path, rows[:4]) == 1, "a stream, whose length nobody knows"
    assert contents(path) == [result(each) for each in rows[:4]]
    assert contents(tmp_path / "out.jsonl.resume") == [result(each) for each in rows[4:]]


def test_resume_reads_no_further_than_it_has_to(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"".join(encode_row(result(row(index))) for index in range(3)))
    taken = []

    def endless() -> Iterator[Row]:
        for index in range(10**9):
            taken.append(index)
            yield row(index)

    kept: list[tuple[Row, dict[str, Any]]] = []
    with ResultsFile(path) as file:
        stream = endless()
        assert list(file.resume(stream, LINES, lambda *pair: kept.append(pair))) == []
        assert next(stream).index == 3
    assert (taken, [of.index for of, _ in kept]) == ([0, 1, 2, 3], [0, 1, 2])
    assert all(of.digest == found["digest"] for of, found in kept)


def test_letters_stay_readable_and_lone_surrogates_survive() -> None:
    assert "é".encode() in encode_row({"id": "é"})
    assert json.loads(encode_row({"id": "\ud800"})) == {"id": "\ud800"}


def test_a_kept_column_that_holds_no_number_is_null_and_the_line_is_json() -> None:
    """Inspect's scores of samples that its scorer could not grade are NaN."""

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    line = encode_row({"id": "é\ud800", "input": {"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": -1e999}}})
    assert json.loads(line, parse_constant=refused)["input"] == {"a": None, "b": [None, 1.5], "c": {"d": None}}
