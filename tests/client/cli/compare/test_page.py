from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.client.cli.compare.conftest import letters, rows
from tests.client.report.pages import Elements

from gradewire.report.comparison import page

Compare = Callable[..., Result]


def test_the_page_shows_figures_changed_rows_and_conditions(compare: Compare, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    options = ("--html", path, "--fail-if", "smile.losses > 0.9", "--fail-if", "smile.wins > 0.4")
    assert compare(letters(10, 20), letters(60, 20), options=options).exit_code == 4
    text = " ".join(Elements(path.read_text(encoding="utf-8")).text.split())
    for expected in (
        "Comparison with base",
        "base.jsonl and 1 more file",
        "--fail-if 'smile.losses > 0.9' does not hold of new: it is 0",
        "--fail-if 'smile.wins > 0.4' holds of new: it is 0.5",
        "1 won, 1 tied, 0 lost",
        "smile 2 0.150 0.400 +0.2500",
        "Rows that gained most by smile q0 · 0.500 Question question 0? Reference cat base 0.100",
    ):
        assert expected in text


def test_markup_in_answers_is_text_on_the_page(compare: Compare, tmp_path: Path) -> None:
    path, evil = tmp_path / "page.html", "<script>alert(1)</script><img src=x onerror=alert(1)>"
    files = (rows(evil, model="m"), rows(f"{evil} and so on, and more than that", model="n"))
    assert compare(*files, options=("--html", path, "--names", f"{evil},new")).exit_code == 0
    found = Elements(path.read_text(encoding="utf-8"))
    assert "img" not in found.names
    assert found.names.count("script") == 1
    assert evil in found.text


def test_a_page_that_is_too_large_is_one_line(
    compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_BYTES", 1000)
    done = compare(letters(10), letters(20), options=("--html", tmp_path / "page.html"))
    assert done.exit_code == 2
    assert "page.html: the page would have" in done.stderr
