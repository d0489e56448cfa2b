import json
from pathlib import Path

import pytest
from benchmarks.common import rows
from benchmarks.common.rows import (
    items_of,
    note_sources,
    read_lines,
    read_rows,
    require_files,
    resume_or_overwrite,
    same_sources,
)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one file of code that scores."""
    sources = tmp_path / "metrics"
    sources.mkdir()
    (sources / "a.py").write_text("1")
    monkeypatch.setattr(rows, "ROOT", tmp_path)
    monkeypatch.setattr(rows, "SOURCES", (sources,))
    return sources / "a.py"


def test_scores_of_other_code_are_told_apart(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    assert not same_sources(out), "it is not known"
    note_sources(out)
    assert same_sources(out)
    source.write_text("2")
    assert not same_sources(out)


def test_a_run_goes_on_with_scores_of_the_same_code_only(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    assert resume_or_overwrite(out) == "--overwrite"
    out.touch()
    assert resume_or_overwrite(out) == "--resume"
    source.write_text("2")
    assert resume_or_overwrite(out) == "--overwrite"
    assert resume_or_overwrite(out) == "--resume"


def test_the_digest_is_over_the_metrics_code() -> None:
    assert all((folder / "__init__.py").is_file() for folder in rows.SOURCES)


def test_rows_are_those_of_the_models_and_items_keep_labels_back(tmp_path: Path) -> None:
    rows = [
        {"id": model, "question": "q", "references": ["r"], "prediction": "p", "label": 1, "model": model}
        for model in ("gpt4", "fid")
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_lines(path) == rows
    assert items_of(read_rows(path)) == [{"id": "gpt4", "question": "q", "references": ["r"], "prediction": "p"}]


def test_missing_rows_end_the_program_and_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        require_files(tmp_path, tmp_path / "a.jsonl")
    assert ended.value.code == 2
    assert str(tmp_path / "a.jsonl") in capsys.readouterr().err
