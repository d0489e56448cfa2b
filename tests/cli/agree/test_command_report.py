"""What `agree --html` says beside the page's own tests."""

from pathlib import Path

import pytest
from tests.cli.conftest import Command, write_rows
from tests.cli.judged import judging_stub, rows_of
from tests.cli.pages.pixels import data_uri, png

from gradewire_cli.pages import page


def test_a_page_that_cannot_be_small_enough_is_an_error_with_its_reason(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_BYTES", 1000)
    file = write_rows(tmp_path / "rows.jsonl", rows_of(20))
    options = ("--metrics", "rouge_l", "--resamples", "100", "--html", tmp_path / "page.html")
    done = command("agree", file, *options, stub=judging_stub())
    assert done.exit_code == 2
    assert "page.html: the page would be too large (" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_the_page_says_how_many_draws_its_intervals_come_from(command: Command, tmp_path: Path) -> None:
    file, written = write_rows(tmp_path / "rows.jsonl", rows_of(60)), tmp_path / "page.html"
    options = ("--metrics", "rouge_l", "--resamples", "1200", "--html", written)
    assert command("agree", file, *options, stub=judging_stub()).exit_code == 0
    text = written.read_text()
    # Rank statistics are computed for the first thousand draws only.
    assert "linear correlation of score and label, at most 1 (interval from 1,200 draws)" in text
    assert "ties count half, and 0.5 is guessing (interval from 1,000 draws)" in text


def test_long_names_in_the_sentences_about_intervals_are_cut_too(command: Command, tmp_path: Path) -> None:
    # Too few rows for intervals: a sentence lists the cells by their names.
    rows = [{**row, "dataset": "x" * 100_000 + str(place % 3)} for place, row in enumerate(rows_of(12))]
    file, written = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "page.html"
    options = ("--metrics", "rouge_l", "--resamples", "100", "--html", written)
    done = command("agree", file, *options, stub=judging_stub())
    assert done.exit_code == 0, done.stderr[-500:]
    assert written.stat().st_size < 200_000
    assert "x" * 1001 not in written.read_text()


def test_flags_and_proposed_flags_are_on_the_page(command: Command, tmp_path: Path) -> None:
    # Called right and labelled wrong, all of them.
    rows = [{**row, "prediction": "x" * 15, "question": "Is it red today?"} for row in rows_of(30, label=0)]
    rows = [{**row, "flags": "doubtful"} for row in rows]
    file, written = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "page.html"
    options = ("--metrics", "rouge_l", "--resamples", "100", "--html", written)
    done = command("agree", file, *options, stub=judging_stub())
    assert done.exit_code == 0, done.output
    text = written.read_text()
    assert "Flags: <bdi>doubtful; time-dependent proposed, because the question has “today”; bad-gold proposed" in text
    assert "Rules propose flags (bad-gold 30, time-dependent 30), and no row is left out for them" in text
    assert "rules propose flags (bad-gold 30, time-dependent 30)" in done.stderr
    again = command("agree", file, "--metrics", "rouge_l", "--all-tables", "--resamples", "100", stub=judging_stub())
    assert "Proposed flags, the first 50 of 60" in again.stdout
    plain = write_rows(tmp_path / "plain.jsonl", rows_of(30, label=0, prediction="x" * 15))
    assert command("agree", plain, *options, stub=judging_stub()).exit_code == 0
    assert "Flags:" not in written.read_text()


def test_classes_of_wrong_verdicts_are_on_the_page(command: Command, tmp_path: Path) -> None:
    # Called right and labelled wrong, all of them.
    rows = [{**row, "prediction": "x" * 15, "error_class": "<b>own</b>"} for row in rows_of(30, label=0)]
    file, written = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "page.html"
    options = ("--metrics", "lexical_match", "--resamples", "100", "--html", written)
    done = command("agree", file, *options, stub=judging_stub())
    assert done.exit_code == 0, done.output
    text = written.read_text()
    assert "class: &lt;b&gt;own&lt;/b&gt; (given); overall misleading (proposed)" in text
    assert "<h2>Wrong verdicts and doubtful questions</h2>" in text or "Wrong verdicts and doubtful questions" in text
    assert "Wrong verdicts by given class" in text
    assert "<b>own</b>" not in text
    right = write_rows(tmp_path / "right.jsonl", [{**row, "label": 1} for row in rows])
    assert command("agree", right, *options, stub=judging_stub()).exit_code == 0
    assert "Wrong verdicts" not in written.read_text()


def test_pictures_that_rows_name_are_on_the_page(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    (folder / "val").mkdir(parents=True)
    (folder / "val" / "1.png").write_bytes(png())
    named = ["val/1.png", "https://images.example/2.jpg", data_uri(png())]
    # Called right and labelled wrong, all of them. Beside an image, its id is a number.
    rows = [{**row, "image": named[place % 3], "image_id": place} for place, row in enumerate(rows_of(30, label=0))]
    rows = [{**row, "prediction": "x" * 15} for row in rows]
    file, written = write_rows(folder / "rows.jsonl", rows), tmp_path / "page.html"
    options = ("--metrics", "rouge_l", "--resamples", "100", "--html", written)
    done = command("agree", file, *options, stub=judging_stub())
    assert done.exit_code == 0, done.output
    text = written.read_text()
    assert text.count(f'<img src="{named[2]}"') > text.count('<a href="rows/val/1.png"') > 0
    assert '<a href="https://images.example/2.jpg" target="_blank" rel="noopener noreferrer">' in text
    assert "<bdi>val/1.png</bdi>" in text
    only_ids = write_rows(folder / "ids.jsonl", [{**row, "image": None} for row in rows])
    assert command("agree", only_ids, *options, stub=judging_stub()).exit_code == 0
    assert "Picture <bdi>17</bdi>" in written.read_text()
    mapped = ("--map", "image=image_id")
    assert command("agree", file, *mapped, *options, stub=judging_stub()).exit_code == 0
    assert "images.example" not in written.read_text()
