from pathlib import Path

import pytest
from benchmarks.common import kept_scores
from benchmarks.common.kept_scores import note_sources, resume_or_overwrite, same_sources


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one file of code that scores."""
    sources = tmp_path / "metrics"
    sources.mkdir()
    (sources / "a.py").write_text("1")
    monkeypatch.setattr(kept_scores, "ROOT", tmp_path)
    monkeypatch.setattr(kept_scores, "SOURCES", (sources,))
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
    assert all((folder / "__init__.py").is_file() for folder in kept_scores.SOURCES)
