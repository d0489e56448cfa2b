"""Numbers as the page writes them."""

import math

import pytest

from gradewire.agreement.estimates import Difference
from gradewire.report.figures import Figure, over_cells, p_value


@pytest.mark.parametrize(
    ("p", "draws", "text"),
    [
        (2 / 1001, 1000, "≤ 0.002"),  # no draw on the other side: the least that 1,000 draws can say
        (4 / 1001, 1000, "0.004"),  # one draw on the other side
        (2 / 745, 744, "≤ 0.003"),  # 0.00268, up
        (2 / 5001, 5000, "< 0.001"),
        (1.0, 1000, "1.000"),
        (math.nan, 500, "\u2013"),
    ],
)
def test_the_smallest_p_that_so_few_draws_can_say_is_a_bound(p: float, draws: int, text: str) -> None:
    assert p_value(Difference(0.1, 0.05, 0.15, draws, p)).text == text


def test_cells_are_said_where_a_defined_mean_is_not_over_all() -> None:
    figure = Figure("0.305", "0.2 to 0.4", "0.305")
    assert over_cells(figure, 7, 10).remark == "over 7 of 10 cells"
    assert over_cells(figure, 1007, 2010).remark == "over 1,007 of 2,010 cells"
    assert over_cells(figure, 10, 10) == figure
    assert over_cells(Figure("\u2013"), 0, 10).remark == ""
