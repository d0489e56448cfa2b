from pathlib import Path

from benchmarks.agreement.metrics import DOCUMENT, METRICS, ROW_SETS, Scored
from benchmarks.common.measurements import with_block

from gradewire.metrics.choice import MetricDefaults, choose_metrics

# What one request may ask for, by the server's default.
MAX_METRICS = 16


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


def test_the_block_says_where_its_scores_come_from() -> None:
    out = Path("scores.jsonl")
    said = [Scored(out, 12.3, kept=kept, stale=stale).said for kept, stale in ((False, False), (True, False))]
    assert said == ["in 12 s", "kept from an earlier run of the same code"]
    assert "code has changed" in Scored(out, 12.3, kept=True, stale=True).said
