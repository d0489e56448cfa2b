import json
from pathlib import Path

import pytest
from benchmarks.common.rows import items_of, read_lines, read_rows, require_files


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
