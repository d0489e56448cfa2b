"""The page of a comparison holds what it must, loads nothing, stays small, and strangers' texts do nothing in it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.compare.conftest import Rows, letters, rows
from tests.cli.pages.pages import Elements
from tests.cli.pages.samples import HOSTILE

from gradewire_cli.pages import page

Compare = Callable[..., Result]


def words_of(path: Path) -> str:
    return " ".join(Elements(path.read_text(encoding="utf-8")).text.split())


def test_the_page_shows_values_changed_rows_and_conditions(compare: Compare, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    options = ("--html", path, "--fail-if", "smile.losses > 0.9", "--fail-if", "smile.wins > 0.4")
    assert compare(letters(10, 20), letters(60, 20), options=options).exit_code == 4
    text = words_of(path)
    for expected in (
        "Comparison with base",
        "base.jsonl and 1 more file",
        "new on 2 questions",
        "--fail-if 'smile.losses > 0.9' is false for new: the value is 0",
        "--fail-if 'smile.wins > 0.4' is true for new: the value is 0.5",
        "1 won, 1 tied, 0 lost",
        "smile 2 0.150 0.400 +0.2500",
        "Rows that gained most by smile q0 · 0.500 Question question 0? Reference cat base 0.100",
        "Better answers are chosen by",
    ):
        assert expected in text
    assert "Rows that lost most" not in text
    assert re.findall(r'<p class="holds"><bdi>(.*?) for new', path.read_text()) == [
        "--fail-if &#39;smile.wins &gt; 0.4&#39; is true"
    ]


def hostile_files(text: str) -> tuple[Rows, Rows]:
    more = {"question": text, "references": [text] * 9, "kind": text}
    return tuple(
        [row | more | {"id": f"{text[:100]}{place}"} for place, row in enumerate(rows(*answers))]
        for answers in ((f"before {text}", "x"), (f"after the answer {text}", "xxxx"))
    )  # type: ignore[return-value]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_strangers_do_nothing(compare: Compare, tmp_path: Path, text: str) -> None:
    found = []
    for each in ("plain", text):
        path = tmp_path / "page.html"
        name = each[:200].replace(",", ";").encode(errors="replace").decode().replace("\x00", "")
        options = ("--html", path, "--names", f"base {name},new {name}", "--group-by", "kind", "--resamples", "100")
        done = compare(*hostile_files(each), options=options)
        # No answer with a lone surrogate can be scored.
        assert done.exit_code in {0, 1}, done.output
        found.append(Elements(path.read_text(encoding="utf-8")))
    harmless, hostile = found
    # A text that is cut says so in small letters.
    assert set(hostile.names) - {"small", "title"} <= set(harmless.names)
    assert {name for name, _ in hostile.attributes} <= {name for name, _ in harmless.attributes} | {"title"}
    assert not any(name.startswith("on") or name in {"src", "srcset", "style"} for name, _ in hostile.attributes)
    addresses = [value for name, value in hostile.attributes if name == "href"]
    assert all(value is not None and value.startswith("#") for value in addresses)
    assert not {"\u202e", "\u200b", "\x00", "\x07", "\ud800"} & set(hostile.text)


def test_a_page_of_many_rows_and_long_texts_stays_small(compare: Compare, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    long = ["word " * 4000] * 60
    sides = [rows(*(f"{side} {place} {text}" for place, text in enumerate(long))) for side in ("a", "bcd", "efghij")]
    done = compare(*sides, options=("--html", path, "--resamples", "100"))
    assert done.exit_code == 0, done.output
    assert path.stat().st_size < 2_000_000


def test_tables_of_many_lines_are_cut_and_say_so(
    compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    sides = [[row | {"kind": f"kind {place}"} for place, row in enumerate(letters(*[size] * 100))] for size in (5, 9)]
    options = ("--html", path, "--group-by", "kind", "--resamples", "100")
    assert compare(*sides, options=options).exit_code == 0
    assert "lines are shown" not in path.read_text()
    monkeypatch.setattr(page, "MAX_BYTES", path.stat().st_size // 2)
    assert compare(*sides, options=options).exit_code == 0
    assert re.search("The first (60|20) of 100 rows are shown.", path.read_text())


def test_a_page_that_is_too_large_is_one_line(
    compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_BYTES", 1000)
    done = compare(letters(10), letters(20), options=("--html", tmp_path / "page.html"))
    assert done.exit_code == 2
    assert "page.html: the page would be too large (" in done.stderr
