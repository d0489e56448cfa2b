from pathlib import Path

import pytest
from benchmarks.papers.result_tables import Figure, figure, section_of, tables_in
from hypothesis import given
from hypothesis import strategies as st

PAGE = """# Values

## First

| set | model | value |
|---|---|---:|
| words (3) | `a` | 0.5 |
| words (3) | `b` | 0.25 [.125, 0.5] |

## Second

<!-- begin block -->

**All rows**

| metric | Pearson |
|---|---:|
| smile:v1 | 0.779 [.760, .797] |
| exact_match | 0.305 [.291, .319] (7 of 10) |

**Mean of 10 cells (data set and model)**

| metric | nq | tq |
|---|---:|---:|
| smile:v1 | -0.5 [-.6, -.4] | 0.75 |
| bleu | - | +0.250 |

<!-- end block -->

## Third

no table

## Fenced

```
# a comment
```

| metric | value |
|---|---|
| a | 1 |
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE, "utf-8")
    return path


def test_a_value_comes_from_its_table_row_and_column(page: Path) -> None:
    block = section_of(page, "block")
    assert figure(block, "All rows", "smile:v1", ["Pearson"]) == Figure(0.779, 0.760, 0.797)
    assert figure(block, "All rows", "exact_match", ["Pearson"]) == Figure(0.305, 0.291, 0.319)
    assert figure(block, "Mean of 10 cells", "smile:v1", ["nq"]) == Figure(-0.5, -0.6, -0.4)
    assert figure(block, "Mean of 10 cells", "bleu", ["tq"]) == Figure(0.25)


def test_the_mean_of_columns_has_no_interval(page: Path) -> None:
    assert figure(section_of(page, "block"), "Mean of 10 cells", "smile:v1", ["nq", "tq"]) == Figure(0.125)


def test_failed_scores_are_counted_wherever_the_section_has_them() -> None:
    section = """**All rows**

| metric | rows | failed | AUC |
|---|---|---|---|
| smile | 10 | 0 | 0.5 |
| lave | 8 | 2 | 0.5 |

**By set**

| metric | nq | failed by part |
|---|---|---|
| smile | 0.25 | 0 0 0 |
| lave | 0.25 | 1 0 3 |
"""
    assert figure(section, "All rows", "smile", ["AUC"]) == Figure(0.5)
    assert figure(section, "All rows", "lave", ["AUC"]) == Figure(0.5, failed=4)
    assert figure(section, "By set", "lave", ["nq"]) == Figure(0.25, failed=4)


def test_runs_in_one_cell_give_their_mean() -> None:
    section = (
        "| `left` out (a) | alignment | spread |\n|---|---|---|\n| `nli`, and `more` | 0.664, 0.662 | 0.5 ± 0.01 |\n"
    )
    mean = figure(section, "", "nli, and more", ["alignment"])
    assert mean.value == pytest.approx(0.663)
    assert mean.low is None
    assert figure(section, "", "nli, and more", ["spread"]) == Figure(0.5)


def test_two_cells_name_a_row_where_the_first_is_not_enough(page: Path) -> None:
    section = section_of(page, "First")
    assert figure(section, "", "words (3) | b", ["value"]) == Figure(0.25, 0.125, 0.5)
    assert figure(section, "", "words (3)", ["value"]) == Figure(0.5)


def test_a_section_ends_at_the_next_heading(page: Path) -> None:
    assert not list(tables_in(section_of(page, "Third")))
    assert len(list(tables_in(section_of(page, "First")))) == 1


def test_a_comment_in_a_command_is_no_heading(page: Path) -> None:
    assert figure(section_of(page, "Fenced"), "", "a", ["value"]) == Figure(1.0)


@pytest.mark.parametrize(
    ("table", "row", "column", "error"),
    [
        ("All rows", "sbert", "Pearson", KeyError),
        ("No such table", "smile:v1", "Pearson", KeyError),
        ("All rows", "smile:v1", "Spearman", KeyError),
        ("Mean of 10 cells", "bleu", "nq", ValueError),
    ],
)
def test_what_is_missing_or_no_number_is_an_error(
    page: Path, table: str, row: str, column: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        figure(section_of(page, "block"), table, row, [column])


def test_an_unknown_section_is_an_error(page: Path) -> None:
    with pytest.raises(KeyError, match="Fourth"):
        section_of(page, "Fourth")


@given(st.lists(st.floats(-5000, 5000).map(lambda value: round(value, 3)), min_size=1, max_size=6))
def test_written_values_are_read_again(values: list[float]) -> None:
    columns = [f"column {place}" for place, _ in enumerate(values)]
    lines = [
        f"| metric | {' | '.join(columns)} |",
        "|---" * (len(values) + 1) + "|",
        f"| `a?b=c` | {' | '.join(f'{value:.3f}' for value in values)} |",
    ]
    for column, value in zip(columns, values, strict=True):
        assert figure("\n".join(lines), "", "a?b=c", [column]) == Figure(value)
