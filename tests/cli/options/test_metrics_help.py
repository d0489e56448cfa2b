"""What --help says of metrics and their parameters."""

from tests.cli.conftest import Command

from gradewire.metrics import METRIC_TYPES
from gradewire.metrics.base import wire_parameters


def test_the_help_says_all_there_is_to_write(command: Command) -> None:
    shown = " ".join(command("score", "--help").stdout.split())
    for name in METRIC_TYPES:
        assert f" {name} " in shown
        for parameter in wire_parameters(name).values():
            values = "|".join(parameter.choices)
            assert f":{values}" in shown if parameter.name == "preset" else f"{parameter.name}={values}" in shown


def test_the_help_offers_nothing_that_is_always_refused(command: Command) -> None:
    shown = " ".join(command("score", "--help").stdout.split())
    assert "cider answer=whole|final corpus=request|prepared " in shown
    assert "idf=none|request|prepared" in shown
