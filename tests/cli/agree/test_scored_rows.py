"""Reports of rows whose scores somebody else has."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from gradewire_cli.agree.scored_rows import report_of

ROW = {"question": "q", "references": ["cat"], "prediction": "a cat", "label": 1}
SCORED = {"smile": {"score": 1, "status": "OK"}}


def line(row: Any, scores: Any) -> bytes:
    return json.dumps({"row": row, "scores": scores}).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b" \n", "no rows on standard input"),
        (b"{", "line 1 is unreadable JSON"),
        (b"\xff", "line 1 is unreadable JSON"),
        (b"[" * 100_000, "line 1 is unreadable JSON"),
        (b"[]", 'line 1 is not {"row"'),
        (line(ROW, {}), 'line 1 is not {"row"'),
        (line([], SCORED), 'line 1 is not {"row"'),
        (line(ROW, {"smile": {"score": True, "status": "OK"}}), 'line 1 is not {"row"'),
        (line(ROW, {"smile": {"score": 1}}), 'line 1 is not {"row"'),
        (line(ROW, {"smile": {"score": 10**400, "status": "OK"}}), 'line 1 is not {"row"'),
        (line(ROW, {"smile": {"score": float("nan"), "status": "OK"}}), 'line 1 is not {"row"'),
        (line(ROW, {"smile": {**SCORED["smile"], "warnings": 7}}), 'line 1 is not {"row"'),
        (line(ROW, {"smile": {**SCORED["smile"], "line": {}}}), 'line 1 is not {"row"'),
        (line(ROW, {"smile": {**SCORED["smile"], "matched_reference": "x"}}), 'line 1 is not {"row"'),
        (
            line({**ROW, "label": "odd"}, SCORED),
            "the first labels are all unreadable",
        ),
        (line({"prediction": "a"}, SCORED), "no column for references"),
        (
            line(ROW, SCORED) + b"\n" + line(ROW, {"sbert": {"score": 1, "status": "OK"}}),
            "differ from the first row's",
        ),
    ],
)
def test_what_makes_no_report_is_told_without_a_place_of_the_machine(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(click.ClickException) as caught:
        report_of(content, tmp_path)
    assert said in caught.value.format_message()
    assert str(tmp_path) not in caught.value.format_message()


def test_the_report_is_that_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = [{"score": at % 5 / 4, "status": "OK", "correct": at % 2 == 0, "best_window": "cat"} for at in range(12)]
    rows = [line({**ROW, "id": f"r{at}", "label": at % 2}, {"smile": result}) for at, result in enumerate(results)]
    page = report_of(b"\n\n".join(rows), tmp_path).decode()
    assert "Agreement with human labels" in page
    assert "<mark>cat</mark>" in page
    assert str(tmp_path) not in page
    assert capsys.readouterr().out == "", "standard output is the page's"
