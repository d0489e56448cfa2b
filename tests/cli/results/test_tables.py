"""Values of tables: numbers as people read them, and p values that say no more than so few draws can."""

import math

import pytest

from gradewire_cli.results.tables import Table, count, differing, estimated, measured, of_cells, p_of, points
from gradewire_stats.bootstrap import Difference, Estimate


@pytest.mark.parametrize(
    ("p", "draws", "text"),
    [
        (2 / 1001, 1000, "p <= 0.002"),  # no draw on the other side: the least that 1,000 draws can say
        (4 / 1001, 1000, "p = 0.004"),  # one draw on the other side
        (2 / 745, 744, "p <= 0.003"),  # 0.00268, up
        (2 / 101, 100, "p <= 0.020"),
        (2 / 5001, 5000, "p < 0.001"),
        (1.0, 1000, "p = 1.000"),
        (math.nan, 500, "no p"),
    ],
)
def test_the_smallest_p_that_so_few_draws_can_say_is_a_bound(p: float, draws: int, text: str) -> None:
    difference = Difference(0.1, 0.05, 0.15, draws, p)
    assert str(p_of(difference)) == text
    assert str(differing(difference)) == f"+0.1000 [+0.0500, +0.1500] {text}"


def test_bounds_from_ten_on_keep_their_digits() -> None:
    assert str(estimated(Estimate(10.9, 10.8, 11.25, 100))) == "10.900 [10.800, 11.250]"
    assert str(estimated(Estimate(-0.25, -0.5, 0.125, 100))) == "-0.250 [-.500, .125]"
    assert str(points(Estimate(1010.4, 990.2, 1030.7, 100))) == "1010 [990, 1031]"


def test_cells_are_said_where_a_mean_is_not_over_all() -> None:
    assert str(of_cells(measured(0.305), 7, 10)) == "0.305 (7 of 10)"
    assert of_cells(measured(0.305), 10, 10) == measured(0.305)


def test_a_wide_table_is_cut_and_names_its_rows_again() -> None:
    table = Table("Wide", ["metric", "first", "second"], [["smile", count(1), count(2)]])
    assert list(table.cut(80)) == [table]
    narrow = list(table.cut(16))
    assert [(part.title, part.columns) for part in narrow] == [
        ("Wide", ["metric", "first"]),
        ("Wide (continued)", ["metric", "second"]),
    ]
    assert [[str(cell) for cell in row] for part in narrow for row in part.rows] == [["smile", "1"], ["smile", "2"]]
