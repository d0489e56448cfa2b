import json
import math
from collections.abc import Callable
from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire import Client, InvalidRequest
from gradewire._rows import text_of, unpacked_list, unpacked_object
from gradewire.options import rows_of
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2, types_pb2

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=4)


@given(texts=TEXTS)
@settings(max_examples=example_count(300))
def test_lists_come_back_however_they_were_printed(texts: list[str]) -> None:
    for printed in (str(texts), json.dumps(texts), json.dumps(texts, ensure_ascii=False), str(tuple(texts))):
        assert unpacked_list(printed) == texts, printed
    assert unpacked_list(str(set(texts))) == sorted(set(texts))


@given(texts=st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=12), min_size=2))
@settings(max_examples=example_count(300))
def test_arrays_come_back(texts: list[str]) -> None:
    with np.printoptions(threshold=10**6, linewidth=10**6):
        assert unpacked_list(str(np.array(texts, dtype=object))) == texts
        assert unpacked_list(repr(np.array(texts, dtype=object))) == texts


@given(numbers=st.lists(st.integers(-99, 99) | st.sampled_from([0.5, 2.0, -3.25]), min_size=1))
def test_arrays_of_numbers_come_back(numbers: list[float]) -> None:
    with np.printoptions(threshold=10**6, linewidth=10**6):
        assert unpacked_list(str(np.array(numbers))) == numbers
    assert unpacked_list(str(list(np.array(numbers)))) == numbers


def test_scalars_of_numpy_are_what_they_hold() -> None:
    assert unpacked_list(str([np.str_("it's"), "a"])) == ["it's", "a"]
    assert unpacked_list(str(["np.str_('a')"])) == ["np.str_('a')"]
    assert unpacked_list("[np.str_('a'), np.int64(-3)]") == ["a", -3]


@given(text=st.text(max_size=60))
@settings(max_examples=example_count(500))
def test_any_text_is_a_list_or_none(text: str) -> None:
    for cell in (text, f"[{text}]", f"({text})", f"{{{text}}}"):
        assert isinstance(unpacked_list(cell), list | None)


@pytest.mark.parametrize(
    "text",
    [
        "[sic]",
        "(Paris)",
        "(1, 2)",
        "{1, 2}",
        "{[]}",
        "{['a'], ['b']}",
        "[Paris] is right",
        "['a', 'b'] or so",
        "['a' 'b', 'c']",
        "['a' ... 'b']",
        "[1 2 ... 3]",
        "[11111111111111111111111111111111111111111111 1 x]",
        "['a', nan]",
        "",
        "[",
        "[" * 2000 + "]" * 2000,
        "[__import__('os').system('true')]",
    ],
)
def test_texts_that_only_look_like_lists_stay_texts(text: str) -> None:
    assert unpacked_list(text) is None


def test_what_is_too_long_to_be_parsed_is_a_text() -> None:
    assert unpacked_list(str(["a" * (1 << 21)])) is None


def test_objects_are_read_or_refused_never_taken_for_texts() -> None:
    assert unpacked_object("{'text': ['a'], 'answer_start': [1]}") == {"text": ["a"], "answer_start": [1]}
    assert unpacked_object('{"answer": "a"}') == {"answer": "a"}
    assert unpacked_object("{x | x > 0}") is None
    assert unpacked_object("{'text': array(['a'], dtype=object), 'answer_start': array([1])}") == {
        "text": ["a"],
        "answer_start": [1],
    }
    for text in ("{'text': array(['a', ..., 'b'], dtype=object)}", "{'text': array(['a]'], dtype=object)}"):
        with pytest.raises(ValueError, match="cannot be parsed"):
            unpacked_object(text)


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
        (lambda: datasets.DatasetDict(train=datasets.Dataset.from_list(ROWS)), r"give one table, items\['train'\]"),
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


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA, pd.NaT])
def test_a_missing_answer_is_an_empty_one(missing: object) -> None:
    sent: list[types_pb2.Item] = []

    def score(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        sent.extend(request.items)
        return echo_scores(request, score=half)

    rows = pd.DataFrame({"references": ["a", "b"], "prediction": pd.Series(["x", missing], dtype=object)})
    with Client(transport=StubTransport(score)) as client:
        client.score(rows)
        (other,) = client.score([{"references": ["b"]}])
    assert sent == [types_pb2.Item(references=["a"], prediction="x"), types_pb2.Item(references=["b"])]
    assert "items[0].prediction is missing" in other.scores["smile"].message


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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.1), "0.1"),
        (float(np.float32(3.3)), "3.3"),
        (float(np.float32(16777.217)), "16777.217"),
        (3.30078125, "3.30078125"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e22, "10000000000000000000000"),
        (1e18, "1000000000000000000"),
        (0.00001, "0.00001"),
        (-2.5e-05, "-0.000025"),
        (1e300, "1e+300"),
    ],
)
def test_numbers_are_written_as_people_write_them(value: float, text: str) -> None:
    assert text_of(value) == text


@given(number=st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_number_of_single_precision_is_its_shortest_text(number: float) -> None:
    said = str(text_of(np.float32(number)))
    assert np.float32(said) == np.float32(number)
    assert float(said) in {number, float(str(np.float32(number)))}


@given(
    number=st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) > 1e38 or float(np.float32(x)) != x)
)
def test_the_text_of_any_other_number_is_that_number(number: float) -> None:
    assert float(str(text_of(number))) == number
