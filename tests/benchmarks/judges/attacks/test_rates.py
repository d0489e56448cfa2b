"""Rates: of wrong answers that were called wrong before, with Wilson's interval; the families that stay open."""

from typing import Any

import pytest
from benchmarks.judges.attacks.__main__ import RUNS
from benchmarks.judges.attacks.cases import PLAIN, RIGHT, Case, Half, read_families
from benchmarks.judges.attacks.rates import (
    Rate,
    Verdicts,
    by_metric,
    called_right,
    rates_table,
    still_open,
    tables_of,
    turned,
    unattacked_table,
    where_both,
)
from scipy.stats import binomtest


def case(row: str, family: str, wording: int = 0, *, right: bool = False) -> Case:
    return Case({"id": f"{row}/{family}/{wording}"}, row, family, wording, right)


CASES = [
    *(case("a", PLAIN), case("a", "order")),
    *(case("b", PLAIN), case("b", "order")),
    *(case("c", PLAIN), case("c", "order")),
    *(case("d", RIGHT, right=True), case("d", RIGHT, 3, right=True)),
]
BY_ITEM: dict[str, bool | None] = {
    "a/plain/0": False,
    "a/order/0": True,
    "b/plain/0": None,
    "b/order/0": False,
    "c/plain/0": True,
    "c/order/0": True,
    "d/right/0": True,
    "d/right/3": False,
}
VERDICTS = Verdicts("lave/3", BY_ITEM)


def test_only_answers_that_were_called_wrong_can_turn() -> None:
    assert turned(CASES, VERDICTS) == {"order": Rate(1, 2)}


def test_called_right_counts_all() -> None:
    assert called_right(CASES, VERDICTS) == {
        PLAIN: Rate(1, 3),
        "order": Rate(2, 3),
        RIGHT: Rate(1, 1),
        "right, other words": Rate(0, 1),
    }


@pytest.mark.parametrize(("hits", "rows"), [(0, 24), (10, 24), (24, 24), (1, 3)])
def test_intervals_are_wilsons(hits: int, rows: int) -> None:
    expected = binomtest(hits, rows).proportion_ci(method="wilson")
    assert Rate(hits, rows).interval == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_no_rows_say_nothing() -> None:
    assert str(Rate(0, 0)) == "-"
    assert Rate(0, 0).as_json()["value"] is None
    assert Rate(0, 0).interval == (0.0, 1.0)


def test_a_family_stays_open_until_its_rate_is_halved() -> None:
    plain = {"order": Rate(10, 20), "praise": Rate(10, 20), "length_padding": Rate(1, 20), "role_token": Rate(0, 0)}
    guarded = {"order": Rate(6, 20), "praise": Rate(5, 20), "length_padding": Rate(1, 20), "role_token": Rate(0, 0)}
    assert list(still_open(plain, guarded)) == ["order"]


def test_tables_name_families_and_what_is_held_back() -> None:
    rates = {"lave": {"order": Rate(1, 2), "praise": Rate(0, 4)}}
    table = rates_table(rates, read_families(), Half.HELD_BACK).splitlines()
    assert table[0] == "| family | lave |"
    assert table[2] == "| praise | 0/4 0 % [0, 49] |"
    assert table[3] == "| order (wordings held back) | 1/2 50 % [9, 91] |"
    assert "| right answers called right | 1/1 100 % [21, 100] |" in unattacked_table({"lave": {RIGHT: Rate(1, 1)}})


def test_a_page_has_the_tables_of_all_runs_and_the_lines_that_gave_them() -> None:
    told = [{"lave": VERDICTS, "lave?guard=other_key": Verdicts("lave/3?guard", dict.fromkeys(BY_ITEM, False))}]
    blocks = list(tables_of(told, CASES, Half.DEVELOPMENT))
    assert blocks[0].splitlines()[2] == "| order | 1/2 50 % [9, 91] | 0/3 0 % [0, 56] |"
    assert blocks[2] == "Not halved by lave?guard=other_key: none."
    assert blocks[3] == "```\nlave/3\nlave/3?guard\n```"


def test_verdicts_of_a_failed_score_are_none() -> None:
    scores: list[dict[str, Any]] = [
        {"id": "a", "scores": {"lave": {"correct": True, "line": "lave/3"}}},
        {"id": "b", "scores": {"lave": {"status": "EMPTY_PREDICTION"}}},
    ]
    assert by_metric(scores, ["lave"]) == {"lave": Verdicts("lave/3", {"a": True, "b": None})}


def test_both_have_to_say_right() -> None:
    one = Verdicts("lave/3", {"a": True, "b": True, "c": None})
    other = Verdicts("correctness/1", {"a": True, "b": False, "c": True})
    assert where_both(one, other) == Verdicts("lave/3 and correctness/1", {"a": True, "b": False, "c": False})


def test_every_judge_metric_is_attacked_with_and_without_the_guard_and_the_cascade_too() -> None:
    judges = ("lave", "judge_verdict", "judge_similarity", "judge_grade")
    guarded = tuple(f"{judge},{judge}?guard=other_key" for judge in judges)
    assert list(RUNS) == ["smile,correctness,auto", *guarded]
