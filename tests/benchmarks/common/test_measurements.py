from pathlib import Path

import pytest
from benchmarks.common.measurements import Measurement, append, machine, read, with_block


def test_a_block_is_replaced_and_nothing_else() -> None:
    document = "head\n<!-- begin a -->\nold\n<!-- end a -->\nbetween\n<!-- begin b -->\n<!-- end b -->\ntail\n"
    once = with_block(document, "a", "| new |\n")
    assert once == document.replace("old\n", "\n| new |\n\n")
    assert with_block(once, "a", "| new |\n") == once
    assert with_block(with_block(document, "b", "x"), "b", "").count("x") == 0


@pytest.mark.parametrize(
    "document",
    [
        "",
        "<!-- begin a -->\n",
        "<!-- end a -->\n<!-- begin a -->\n",
        "<!-- begin a -->\n<!-- begin a -->\n<!-- end a -->\n",
    ],
)
def test_marks_that_are_not_there_once_and_in_order_are_an_error(document: str) -> None:
    with pytest.raises(ValueError, match="once each and in this order"):
        with_block(document, "a", "new")


def figure(value: float = 12.0, bound: str = "", name: str = "p99") -> Measurement:
    return Measurement("overload", name, value, "ms", bound, "a test", load=1.5, date="2026-11-23", machine="2 cores")


@pytest.mark.parametrize(
    ("bound", "holds"),
    [("", True), ("<= 12", True), ("< 12", False), ("== 12", True), (">= 12.5", False), ("> 0", True)],
)
def test_a_figure_knows_whether_it_holds(bound: str, holds: bool) -> None:  # noqa: FBT001 - a parameter
    taken = figure(bound=bound)
    assert taken.holds is holds
    assert taken.line().endswith("MISSED") is not holds


def test_a_bound_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="must have the format '<= 50'"):
        figure(bound="about 50")


@pytest.mark.parametrize(("value", "said"), [(0.12345, "0.123 ms"), (12.0, "12 ms"), (1234.5, "1234 ms")])
def test_a_value_is_shown_with_what_counts(value: float, said: str) -> None:
    assert figure(value).measured == said


def test_of_one_figure_the_last_one_stands(tmp_path: Path) -> None:
    path = tmp_path / "figures.jsonl"
    append(path, [figure(1.0), figure(2.0, name="p50")])
    append(path, [figure(3.0, "<= 5")])
    assert sorted(read(path), key=lambda each: each.value) == [figure(2.0, name="p50"), figure(3.0, "<= 5")]


def test_the_machine_is_cores_and_vectors() -> None:
    assert machine().split(" ")[1] == "cores,"
