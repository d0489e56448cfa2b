import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradewire.errors import InvalidRequest
from gradewire.load_testing.capacity.costs import (
    CostPoint,
    Costs,
    Measured,
    one_length,
    read_measurements,
    shipped_measurements,
)

TRUE = Costs(call_s=200e-6, answer_s=90e-6, word_s=2e-6, new_answer_s=1.5e-3, new_word_s=0.4e-3)


def points(costs: Costs = TRUE) -> list[CostPoint]:
    return [
        CostPoint(
            words=words, hit_rate=hit_rate, batch=batch, cpu_s=costs.cpu_s(words=words, hit_rate=hit_rate, batch=batch)
        )
        for words in (4.0, 20.0, 50.0)
        for hit_rate in (0.0, 0.5, 1.0)
        for batch in (1, 32)
    ]


def test_the_cost_of_an_answer_is_the_sum_of_its_causes() -> None:
    # By hand: 200/4 + 90 + 2 x 10 = 160 us warm; 1500 + 400 x 10 = 5500 us new, of which a quarter.
    assert TRUE.cpu_s(words=10, hit_rate=0.75, batch=4) == pytest.approx(160e-6 + 5500e-6 / 4)


def test_costs_are_found_again_from_what_they_give() -> None:
    found = Costs.fitted(points())
    for name in Costs.__slots__:
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=1e-6)
    assert max(map(abs, found.errors(points()))) < 1e-9


def test_no_cost_is_less_than_nothing() -> None:
    wrong = [CostPoint(words=each.words, hit_rate=each.hit_rate, batch=each.batch, cpu_s=1e-3) for each in points()]
    found = Costs.fitted(wrong)
    assert min(getattr(found, name) for name in Costs.__slots__) >= 0
    assert found.cpu_s(words=20, hit_rate=0.5, batch=1) == pytest.approx(1e-3, rel=0.05)


@pytest.mark.parametrize(
    "some",
    [
        points()[:3],
        [each for each in points() if each.hit_rate == 1],
        # A few rows that a file has twice.
        [replace(each, hit_rate=each.hit_rate / 10) for each in points()],
    ],
)
def test_points_that_do_not_tell_the_costs_apart_are_refused(some: list[CostPoint]) -> None:
    with pytest.raises(InvalidRequest, match="--repeat-share 1"):
        Costs.fitted(some)


def test_answers_of_one_length_have_the_costs_of_that_length() -> None:
    own = [replace(each, words=each.words * nearly) for each in points() for nearly in (0.98, 1.02) if each.words == 20]
    found = Costs.fitted(own)
    assert one_length(own) == pytest.approx(20)
    assert (found.word_s, found.new_word_s) == (0, 0)
    for each in points():
        if each.words == 20:
            told = found.cpu_s(words=20, hit_rate=each.hit_rate, batch=each.batch)
            assert told == pytest.approx(each.cpu_s, rel=1e-3)
    assert one_length(points()) is None


def load_file(path: Path, **changes: Any) -> Path:
    step = {
        "outcome": "holds",
        "rate_per_s": 100.0,
        "batch": 1,
        "words_mean": 4.5,
        "answers_repeated_share": 0.5,
        "server_cpu_s_per_item": 0.002,
    }
    document = {"metrics": {"smile": "smile:fast/1?model=m@0"}, "steps": [step | changes, step | {"outcome": "misses"}]}
    path.write_text(json.dumps(document))
    return path


def test_steps_that_kept_up_are_read_from_files_of_bench_load(tmp_path: Path) -> None:
    found = read_measurements([load_file(tmp_path / "a.json"), load_file(tmp_path / "b.json", words_mean=50.0)])
    assert [(point.words, point.hit_rate, point.cpu_s) for point in found.points] == [
        (4.5, 0.5, 0.002),
        (50, 0.5, 0.002),
    ]
    assert found.metrics == ["smile:fast/1?model=m@0"]


def test_files_of_something_else_are_refused_by_name(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    for text in ("", "[]", "{}"):
        other.write_text(text)
        with pytest.raises(InvalidRequest, match=r"other\.json is no file of gradewire bench load"):
            read_measurements([other])
    with pytest.raises(InvalidRequest, match="--metrics-url"):
        read_measurements([load_file(other, server_cpu_s_per_item=None)])
    document = json.loads(load_file(other).read_text())
    other.write_text(json.dumps(document | {"metrics": {"sbert": "sbert/1"}}))
    with pytest.raises(InvalidRequest, match="same metrics"):
        read_measurements([load_file(tmp_path / "a.json"), other])


@pytest.mark.parametrize(
    ("load", "cores", "busy"), [(2.0, 2, False), (2.1, 2, True), (10.9, 16, False), (None, None, False)]
)
def test_a_machine_was_busy_where_more_ran_than_it_has_cores(
    load: float | None, cores: int | None, *, busy: bool
) -> None:
    assert Measured(points=points(), told="", metrics=[], load=load, cores=cores).was_busy is busy


def test_the_measurements_that_come_with_gradewire_tell_the_costs_apart() -> None:
    measured = shipped_measurements()
    costs = Costs.fitted(measured.points)
    assert "measured 20" in measured.told
    assert f"load average of at most {measured.load:.1f}" in measured.told
    assert f"on {measured.cores} cores" in measured.told
    assert costs.new_word_s > costs.word_s
    assert max(map(abs, costs.errors(measured.points))) < 1
