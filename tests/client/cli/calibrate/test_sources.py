"""Which source a labelled row counts for."""

import pytest

from gradewire.cli.calibrate.sources import source_of
from gradewire.cli.input.rows import Row


def row(grouping: dict[str, str]) -> Row:
    return Row(
        index=0, place="line 1", id="1", item={}, problem="", digest="", dataset="nq", file="b.jsonl", grouping=grouping
    )


@pytest.mark.parametrize(
    ("grouping", "files", "source"),
    [
        ({"source": "tq"}, 2, "tq"),
        ({"source": ""}, 2, "b.jsonl"),
        ({"source": ""}, 1, "nq"),
        ({}, 1, "nq"),
        ({"dataset": "own"}, 2, "own"),
        ({"dataset": ""}, 2, ""),  # asked for by name: what lacks it is of one source
    ],
)
def test_a_column_counts_before_files_and_files_before_data_sets(
    grouping: dict[str, str], files: int, source: str
) -> None:
    assert source_of(row(grouping), several_files=files > 1) == source
