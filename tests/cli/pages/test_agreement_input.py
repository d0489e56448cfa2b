"""A page stays within its size, whatever the rows hold."""

import re
from dataclasses import replace

import pytest
from tests.cli.pages.pages import Elements, page_of, simple_rows
from tests.cli.pages.samples import failed, random_rows, report_of, smile

from gradewire_cli.pages import page
from gradewire_cli.pages.agreement import render
from gradewire_cli.pages.agreement_input import ReportRow
from gradewire_cli.pages.page import MAX_BYTES
from gradewire_cli.problems import InputError


def test_when_the_page_grows_too_large_fewer_answers_are_shown_and_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(random_rows(600, metrics=2))
    assert "up to 25 answers for each" in render(report).decode()
    monkeypatch.setattr(page, "MAX_BYTES", 100_000)
    small = render(report)
    assert len(small) <= 100_000
    assert re.search("up to (15|10|6|3|1) answers for each", small.decode())


def test_hundreds_of_references_and_long_words_stay_within_the_size() -> None:
    rows = [
        replace(row, references=["r" * 300] * 1000, prediction="p" * 100_000, question="q" * 100_000)
        for row in random_rows(200, metrics=3, hostile=False)
    ]
    written = render(report_of(rows))
    assert len(written) <= MAX_BYTES
    assert "and 993 more references" in written.decode()


def many_models(rows: int, *, metrics: int) -> list[ReportRow]:
    """Every row of another model."""
    return [
        replace(row, model=f"model {place}")
        for place, row in enumerate(random_rows(rows, metrics=metrics, hostile=False))
    ]


def test_of_a_thousand_models_the_largest_cells_are_shown_and_how_many_are_not() -> None:
    rows = [
        replace(row, model="big") if place % 3 == 0 else row for place, row in enumerate(many_models(600, metrics=2))
    ]
    report = report_of(rows, resamples=2)
    written = render(report)
    assert len(written) <= MAX_BYTES
    text = Elements(written.decode()).text
    # 600 rows in 2 data sets: 400 models with one row each, and one in both data sets.
    there = len(report.agreement.metrics[0].cells)
    assert there == 402 + 2 + 401 + 1
    assert f"The 200 largest of {there:,} lines of each metric are shown. Use --json for all values." in text
    lines = written.decode().split("data-metric=")[1:]
    assert len(lines) == 2 * 200 + 3  # the paired differences have it too
    assert sum('data-model="big"' in line.split(">")[0] for line in lines) == 2 * 3
    assert written.count(b"<option") < 350  # only models that are shown are offered


def test_the_table_of_cells_gives_way_before_the_page_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(many_models(600, metrics=2), resamples=2)
    monkeypatch.setattr(page, "MAX_BYTES", 60_000)
    small = render(report).decode()
    assert len(small.encode()) <= 60_000
    assert "No answers are shown, because the page would be too large." in small
    assert "The 0 largest of 1,203 lines of each metric" in small
    assert "The first 0 of 3 lines are shown" in small
    monkeypatch.setattr(page, "MAX_BYTES", 10_000)
    with pytest.raises(InputError, match="even without any answer or cell"):
        render(report)


@pytest.mark.parametrize("kind", ["dataset", "model", "group"])
def test_names_of_a_megabyte_are_cut_and_stay_apart(kind: str) -> None:
    rows = [
        replace(row, **{kind: "\u202e" + "x" * 1_000_000 + str(place % 3)})
        for place, row in enumerate(random_rows(60, metrics=2, hostile=False))
    ]
    groups = [row.group for row in rows] if kind == "group" else ()
    report = report_of(rows, resamples=2, groups=groups)
    written = render(report)
    assert len(written) < 400_000
    text = written.decode()
    name = "[U+202E]" + "x" * 71 + "…"
    assert "\u202e" not in text
    assert "x" * 72 not in text
    for shown in (name, f"{name} (2)", f"{name} (3)"):
        assert f'<option value="{shown}">' in text
        assert f'data-{kind}="{shown}"' in text


def test_metrics_beyond_the_first_forty_and_long_labels_of_metrics_are_left_out() -> None:
    rows = [
        replace(row, results={f"{number}-{'m' * 100_000}": row.results["smile"] for number in range(45)})
        for row in random_rows(12, metrics=1, hostile=False)
    ]
    written = render(report_of(rows, resamples=2))
    assert len(written) <= MAX_BYTES
    text = " ".join(Elements(written.decode()).text.split())
    assert "The first 40 of 45 metrics are shown." in text
    assert f"39-{'m' * 76}… " in text
    assert "40-m" not in text
    assert "m" * 80 not in text


def test_results_of_strangers_files_are_cut_too() -> None:
    big = "\u202e" * 100_000
    strange = smile(0.1, big, **{f"part{number}": big for number in range(100)})
    rows = simple_rows()
    rows[0] = replace(rows[0], results={"smile": strange | {"warnings": [big] * 9, "line": big}}, labels=[1.0] * 5000)
    rows[2:] = [
        replace(rows[3], id=f"lost {place}", results={"smile": failed(f"{place}{big}") | {"message": big}})
        for place in range(200)
    ]
    text = page_of(rows)
    assert len(text.encode()) < 1_000_000
    assert "other statuses" in text
    assert "and 4960 more" in text
