import pytest
from benchmarks.agreement import DOCUMENT, METRICS, ROW_SETS, with_block

from gradewire.metric_choice import MetricDefaults, choose_metrics

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
