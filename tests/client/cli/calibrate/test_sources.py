"""Which source a labelled row counts for."""

import pytest

from gradewire.cli.calibrate.sources import source_of
from gradewire.cli.input.rows import Row


def row(grouping: dict[str, str]) -> Row:
    return Row(
        index=0, place="line 1", id="1", item={}, problem="", digest="", dataset="nq", file="b.jsonl", grouping=grouping
    )


@pytest.mark.parametrize(
    ("grouping", "several_files", "source"),
    [
        ({"source": "tq"}, True, "tq"),
        ({"source": ""}, True, "b.jsonl"),
        ({"source": ""}, False, "nq"),
        ({}, False, "nq"),
        ({"dataset": "own"}, True, "own"),
        ({"dataset": ""}, True, ""),  # asked for by name: what lacks it is of one source
    ],
)
def test_a_column_counts_before_files_and_files_before_data_sets(
    grouping: dict[str, str],
    several_files: bool,
    source: str,  # noqa: FBT001 - a parameter of the test
) -> None:
    assert source_of(row(grouping), several_files=several_files) == source
