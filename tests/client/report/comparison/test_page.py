"""The page of a comparison holds what it must, loads nothing, stays small, and strangers' texts do nothing in it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.client.report.pages import Elements
from tests.client.report.samples import HOSTILE

from gradewire.report import ReportTooLargeError
from gradewire.report.comparison import page
from gradewire.report.comparison.input import CandidateSection, ChangedAnswer, ComparisonInput, OutcomeCounts
from gradewire.report.figures import Figure
from gradewire.report.tables import Column, Line, Table


def table(caption: str, *rows: tuple[str, str]) -> Table:
    columns = [Column("metric", numeric=False), Column("difference")]
    return Table(caption, columns, [Line([Figure(name, order=name), Figure(text, order="1")]) for name, text in rows])


def changed(text: str, number: int = 0) -> ChangedAnswer:
    return ChangedAnswer(
        id=f"{text[:100]}{number}",
        question=text,
        references=[text] * 9,
        baseline=f"before {text}",
        candidate=f"after {text}",
        baseline_score=0.25,
        candidate_score=0.75,
        baseline_verdict="wrong",
        candidate_verdict="right",
    )


def comparison(text: str = "plain", rows: int = 1) -> ComparisonInput:
    candidate = CandidateSection(
        candidate=f"new {text}",
        pairs=1474,
        tables=[table(f"figures {text}", (f"smile {text}", "+0.0423 [+0.0330, +0.0518] p < 0.001"))],
        outcomes=[OutcomeCounts(chooser=f"smile {text}", wins=3, ties=1, losses=0, undecided=2)],
        changed_by=f"smile {text}",
        gained=[changed(text, number) for number in range(rows)],
        lost=[],
        differences=table("What differs", (f"file {text}", f"a {text}")),
    )
    return ComparisonInput(
        source=f"base.jsonl {text}",
        created="2026-11-24",
        baseline=f"base {text}",
        chooser=f"smile:v1/1 {text}",
        candidates=[candidate],
        notes=[f"a note {text}"],
        conditions=[(f"smile.mean < 0 holds {text}", True), (f"smile.wins < 0 does not hold {text}", False)],
        lines=[(f"smile {text}", f"smile:v1/1?model={text}")],
    )


def test_everything_that_was_found_is_there() -> None:
    text = " ".join(Elements(page.render(comparison()).decode()).text.split())
    for expected in (
        "Comparison with base plain",
        "base.jsonl plain, 2026-11-24: new plain on 1,474 questions",
        "smile.mean < 0 holds plain",
        "3 won, 1 tied, 0 lost, 2 undecided",
        "smile plain +0.0423 [+0.0330, +0.0518] p < 0.001",
        "What differs metric difference file plain a plain",
        "Rows that gained most by smile plain plain0 · 0.500 Question plain Reference plain",
        "base plain 0.250 wrong before plain new plain 0.750 right after plain",
        "Better answers are chosen by smile:v1/1 plain",
        "a note plain",
        "smile plain smile:v1/1?model=plain",
    ):
        assert expected in text
    assert "Rows that lost most" not in text


def test_only_conditions_that_hold_stand_out() -> None:
    text = page.render(comparison()).decode()
    assert re.findall(r'<p class="holds"><bdi>(.*?)</bdi>', text) == ["smile.mean &lt; 0 holds plain"]
    assert "<p><bdi>smile.wins &lt; 0 does not hold plain</bdi>" in text


def test_bars_are_as_long_as_their_shares() -> None:
    drawn = re.findall(
        r'<rect class="part (\w+)" x="([\d.]+)" y="\d+" width="([\d.]+)"', page.render(comparison()).decode()
    )
    assert drawn == [("right", "2.0", "195.0"), ("between", "197.0", "65.0")]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_strangers_do_nothing(text: str) -> None:
    harmless, hostile = (Elements(page.render(comparison(each)).decode()) for each in ("plain", text))
    # A text that is cut says so in small letters.
    assert [name for name in hostile.names if name != "small"] == harmless.names
    assert {name for name, _ in hostile.attributes} == {name for name, _ in harmless.attributes}
    assert not any(name.startswith("on") or name in {"src", "srcset"} for name, _ in hostile.attributes)
    addresses = [value for name, value in hostile.attributes if name == "href"]
    assert all(value is not None and value.startswith("#") for value in addresses)
    assert not {"\u202e", "\u200b", "\x00", "\x07", "\ud800"} & set(hostile.text)


def test_the_policy_allows_its_own_script_and_style_alone() -> None:
    text = page.render(comparison()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert policy[1].startswith("default-src &#39;none&#39;;")
    assert "style=" not in text


def test_a_page_of_many_rows_and_long_texts_stays_small(tmp_path: Path) -> None:
    many = comparison("word " * 20_000, rows=500)
    many = replace(many, candidates=[replace(many.candidates[0], candidate=f"new {n}") for n in range(60)])
    size = page.write_comparison(tmp_path / "page.html", many)
    assert size == (tmp_path / "page.html").stat().st_size < 2_000_000


def test_tables_of_many_lines_are_cut_and_say_so() -> None:
    long = table("groups", *((f"group {number}", "0") for number in range(900)))
    found = comparison()
    found = replace(found, candidates=[replace(found.candidates[0], tables=[long])])
    assert "The first 400 of 900 lines are shown." in page.render(found).decode()


def test_what_cannot_be_made_small_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_BYTES", 1000)
    with pytest.raises(ReportTooLargeError, match="without a single answer"):
        page.render(comparison())
