from pathlib import Path

import pytest
from benchmarks.agreement import metrics as agreement
from benchmarks.agreement.metrics import (
    DOCUMENT,
    METRICS,
    ROW_SETS,
    Scored,
    same_sources,
    sources_beside,
    sources_digest,
    with_block,
)

from gradewire.metric_types.choice import MetricDefaults, choose_metrics

# What one request may ask for, by the server's default.
MAX_METRICS = 16


def test_a_block_is_replaced_and_nothing_else() -> None:
    document = "head\n<!-- begin a -->\nold\n<!-- end a -->\nbetween\n<!-- begin b -->\n<!-- end b -->\ntail\n"
    once = with_block(document, "a", "| new |\n")
    assert once == document.replace("old\n", "\n| new |\n\n")
    assert with_block(once, "a", "| new |\n") == once
    assert with_block(with_block(document, "b", "x"), "b", "").count("x") == 0


@pytest.mark.parametrize(
    "document",
    [
        "",
        "<!-- begin a -->\n",
        "<!-- end a -->\n<!-- begin a -->\n",
        "<!-- begin a -->\n<!-- begin a -->\n<!-- end a -->\n",
    ],
)
def test_marks_that_are_not_there_once_and_in_order_are_an_error(document: str) -> None:
    with pytest.raises(ValueError, match="once each and in this order"):
        with_block(document, "a", "new")


def test_the_document_has_a_block_for_every_set_of_rows() -> None:
    text = DOCUMENT.read_text("utf-8")
    for rows in ROW_SETS:
        replaced = with_block(text, rows.name, "only this")
        assert replaced.count("only this") == 1
        assert with_block(replaced, rows.name, "") == with_block(text, rows.name, "")


def test_every_run_can_be_asked_for_in_one_request_and_labels_tell_all_metrics_apart() -> None:
    labels: list[str] = []
    for metrics in METRICS.values():
        assert len(metrics) <= MAX_METRICS
        labels += choose_metrics(",".join(metrics), MetricDefaults()).labels
    assert len(set(labels)) == len(labels)


def test_scores_of_other_code_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources, out = tmp_path / "metrics", tmp_path / "scores.jsonl"
    sources.mkdir()
    (sources / "a.py").write_text("1")
    monkeypatch.setattr(agreement, "ROOT", tmp_path)
    monkeypatch.setattr(agreement, "SOURCES", (sources,))
    assert not same_sources(out), "nobody knows"
    sources_beside(out).write_text(sources_digest())
    assert same_sources(out)
    (sources / "a.py").write_text("2")
    assert not same_sources(out)
    said = [Scored(out, 12.3, kept=kept, stale=stale).said for kept, stale in ((False, False), (True, False))]
    assert said == ["in 12 s", "kept from an earlier run of the same code"]
    assert "code has changed" in Scored(out, 12.3, kept=True, stale=True).said


def test_the_digest_is_over_the_metrics_code() -> None:
    assert all((folder / "__init__.py").is_file() for folder in agreement.SOURCES)
