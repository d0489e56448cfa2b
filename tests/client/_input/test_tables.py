"""Tables of the real libraries, in every call of the client."""

from collections.abc import Callable
from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from gradewire import Client, InvalidRequest
from gradewire._calls.arguments import rows_of
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2, types_pb2

ROWS = [{"references": ["cat", "kitten"], "prediction": "a cat"}, {"references": ["2"], "prediction": "2"}]
TABLES: dict[str, Callable[[], Any]] = {
    "rows": lambda: ROWS,
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas of arrays": lambda: pd.DataFrame(
        {"answers": [np.array(row["references"], dtype=object) for row in ROWS], "response": ["a cat", 2]}
    ),
    "pandas of a CSV file": lambda: pd.DataFrame(
        {"references": [str(r["references"]) for r in ROWS], "pred": ["a cat", 2.0]}
    ),
    "pandas through parquet": lambda: pd.DataFrame(ROWS).convert_dtypes(dtype_backend="pyarrow"),
    "records of pandas": lambda: pd.DataFrame(ROWS).to_dict("records"),
    "pandas in capitals": lambda: pd.DataFrame(ROWS).rename(
        columns={"references": "Answer ", "prediction": "Response"}
    ),
    "polars": lambda: pl.DataFrame(ROWS),
    "Arrow table": lambda: pa.Table.from_pylist(ROWS),
    "Arrow batch": lambda: pa.RecordBatch.from_pylist(ROWS),
    "Arrow reader": lambda: pa.Table.from_pylist(ROWS).to_reader(),
    "Arrow chunks": lambda: pa.chunked_array([pa.array(ROWS)]),
    "Arrow structs": lambda: pa.array(ROWS),
    "Arrow dataset": lambda: pyarrow.dataset.dataset(pa.Table.from_pylist(ROWS)),
    "datasets": lambda: datasets.Dataset.from_list(ROWS),
    "datasets as numpy": lambda: datasets.Dataset.from_list(ROWS).with_format("numpy"),
    "datasets as stream": lambda: datasets.Dataset.from_list(ROWS).to_iterable_dataset(),
    "generator": lambda: iter(ROWS),
    "array of rows": lambda: np.array(ROWS, dtype=object),
}


def half(_: types_pb2.Item) -> float:
    return 0.5


@pytest.mark.parametrize("name", TABLES)
def test_every_call_reads_a_table_as_its_rows(name: str) -> None:
    seen: list[types_pb2.Item] = []

    def score(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        seen.extend(request.items)
        return echo_scores(request, score=half)

    expected = [types_pb2.Item(**row) for row in ROWS]
    with Client(transport=StubTransport(score)) as client:
        assert len(client.score(TABLES[name]())) == len(ROWS)
        assert seen == expected
        seen.clear()
        assert len(client.submit(TABLES[name]()).result(30)) == len(ROWS)
        assert seen == expected
        assert [scores.index for scores in client.score_stream(TABLES[name]())] == [0, 1]
        assert client.prepare(TABLES[name]()).entries == len(ROWS)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (lambda: datasets.DatasetDict(train=datasets.Dataset.from_list(ROWS)), r"give one of them, items\['train'\]"),
        (lambda: pl.LazyFrame(ROWS), r"give items.collect\(\)"),
        (lambda: {"references": [["a"]], "prediction": ["b"]}, "items is one dict: give a list of mappings"),
        (lambda: pd.DataFrame([["a", "b"]], columns=["references", "references"]), "more than one column 'references'"),
        (lambda: 5, "items is a int: give a list of mappings or a table"),
        (lambda: "rows.csv", "items is one str"),
    ],
)
def test_what_is_no_table_says_what_to_give(table: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        list(rows_of("items", table()))


def test_a_missing_answer_is_no_word() -> None:
    table = pd.DataFrame({"references": ["a", "b"], "prediction": ["x", None]})
    with Client(transport=StubTransport(lambda request: echo_scores(request, score=half))) as client:
        first, second = client.score(table)
    assert first.scores["smile"].status == "OK"
    assert second.scores["smile"].status == "INVALID_INPUT"
    assert 'items[1].prediction is nan: write ""' in second.scores["smile"].message


def test_a_submission_is_a_snapshot_of_arrays_too() -> None:
    references = np.array(["a"], dtype=object)
    seen: list[str] = []

    def score(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        seen.extend(request.items[0].references)
        return echo_scores(request, score=half)

    with Client(transport=StubTransport(score)) as client:
        # A callback keeps the queue busy until the array has changed.
        taken = client.submit([{"references": references, "prediction": "p"}])
        references[0] = "b"
        taken.result(30)
    assert seen == ["a"]
