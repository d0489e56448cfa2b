"""`gradewire score --report`: the page of a run, also of one that goes on."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command, answer, write_rows
from tests.cli.pages.pages import Elements

from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2, types_pb2

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(2)> \u202eevil"


def rows(count: int = 60) -> list[dict[str, Any]]:
    """Answers that the stub scores by their length, of two models."""
    return [
        {
            "id": f"row {index}",
            "question": f"question {index}?",
            "references": ["a reference"],
            "prediction": "" if index == 9 else "x" * (1 + index % 50),
            "model": "even" if index % 2 == 0 else "odd",
        }
        for index in range(count)
    ]


def doubting() -> StubTransport:
    """smile by length; verdicts from .25 on, of which those from .2 to .3 are uncertain."""

    def judge(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        reply = answer(request)
        for result in (result for item in reply.items for result in item.results):
            if result.status == types_pb2.STATUS_OK:
                result.correct = result.score >= 0.25
                if 0.2 <= result.score <= 0.3:
                    result.warnings.append(types_pb2.WARNING_UNCERTAIN)
        return reply

    return StubTransport(judge)


def test_the_page_has_the_run_in_one_file(command: Command, tmp_path: Path) -> None:
    file, page = write_rows(tmp_path / "a.jsonl", rows()), tmp_path / "page.html"
    done = command("score", file, "--metrics", "smile", "--report", page, stub=doubting())
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 60, "rows are printed as without the page"
    elements = Elements(page.read_text(encoding="utf-8"))
    loaded = [value for name, value in elements.attributes if name in {"src", "href", "action"}]
    assert all(value and value.startswith("#") for value in loaded), "nothing is loaded"
    text = " ".join(elements.text.split())
    for part in (
        "a.jsonl, ",
        "60 rows, 1 metric",
        "Rows without a score 1",
        "Answers to review",
        "question 24?",
        "0.250 right",
        "Answers with the lowest scores by smile",
        "0.010 wrong",
        "1 EMPTY_PREDICTION",
        "row 9",
        "smile by model",
        "gradewire score",
    ):
        assert part in text, part
    assert text.index("odd") < text.index("even"), "the better model first"


def test_texts_of_rows_are_shown_and_not_run(command: Command, tmp_path: Path) -> None:
    found = [{**row, "question": HOSTILE, "id": HOSTILE, "model": HOSTILE + row["model"]} for row in rows(4)]
    page = tmp_path / "page.html"
    command("score", write_rows(tmp_path / "a.jsonl", found), "--metrics", "smile", "--report", page, "--quiet")
    elements = Elements(page.read_text(encoding="utf-8"))
    assert elements.names.count("script") == 1
    assert "img" not in elements.names
    assert "<script>alert(1)</script>" in elements.text
    assert "[U+202E]evil" in elements.text


def test_a_resumed_run_has_all_rows_on_its_page(command: Command, tmp_path: Path) -> None:
    out, page, whole = tmp_path / "out.jsonl", tmp_path / "page.html", tmp_path / "whole.html"
    file = write_rows(tmp_path / "a.jsonl", rows())
    arguments = ("score", file, "--metrics", "smile", "--quiet", "--out")
    command(*arguments, tmp_path / "other.jsonl", "--report", whole, stub=doubting())
    command(*arguments, out, stub=doubting())
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:40]))
    command(*arguments, out, "--resume", "--report", page, stub=doubting())
    shown, expected = (Elements(each.read_text(encoding="utf-8")).text for each in (page, whole))
    assert shown == expected


def test_a_large_run_fits_on_a_page(command: Command, tmp_path: Path) -> None:
    long = [{**row, "question": "long " * 20_000, "references": ["many " * 20_000] * 9} for row in rows(300)]
    page = tmp_path / "page.html"
    command("score", write_rows(tmp_path / "a.jsonl", long), "--metrics", "smile", "--report", page, "--quiet")
    assert page.stat().st_size < 1_900_000
    assert "characters 1 to" in page.read_text(encoding="utf-8"), "texts are cut, and say so"


def test_a_missing_package_is_named_before_a_row_is_scored(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    file, out = write_rows(tmp_path / "a.jsonl", rows()), tmp_path / "out.jsonl"
    done = command("score", file, "--metrics", "smile", "--report", tmp_path / "page.html", "--out", out)
    assert done.exit_code == 2
    assert "--report needs jinja2" in done.stderr
    assert "pip install 'gradewire[agree]'" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(("name", "said"), [("page.csv", ".html"), ("a.jsonl", "the input")])
def test_a_page_replaces_no_input_and_has_its_suffix(command: Command, tmp_path: Path, name: str, said: str) -> None:
    file = write_rows(tmp_path / "a.jsonl", rows())
    before = file.read_bytes()
    done = command("score", file, "--metrics", "smile", "--report", tmp_path / name)
    assert done.exit_code == 2
    assert said in done.stderr
    assert file.read_bytes() == before


def test_a_finished_table_has_no_page_to_make(command: Command, tmp_path: Path) -> None:
    file, out = write_rows(tmp_path / "a.jsonl", rows(8)), tmp_path / "out.csv"
    command("score", file, "--metrics", "smile", "--out", out, "--quiet")
    done = command("score", file, "--metrics", "smile", "--out", out, "--resume", "--report", tmp_path / "page.html")
    assert done.exit_code == 2
    assert "score again with --overwrite" in done.stderr
