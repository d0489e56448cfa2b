"""Files as programs write them: each is read as its twin in JSONL, or refused with what to change.

The bytes are what pandas 3.1, polars 2.1, datasets 5.2, pyarrow, Excel, LibreOffice, PostgreSQL and PowerShell write.
"""

import gzip
import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet
from tests.cli.conftest import Command, answer

from gradewire.testing import StubTransport
from gradewire_proto.v1 import scoring_pb2, types_pb2

TWIN = [{"references": ["cat", "kitten"], "prediction": "a cat"}, {"references": ["2"], "prediction": "2"}]


@dataclass(frozen=True)
class RealFile:
    """What a program writes, and what is to come of it.

    Attributes:
        suffix: Of the file's name.
        content: Its bytes.
        rows: Those of its twin; None for a row that is refused.
        options: Of the command.
        says: What standard error, or the message of the refused row, has to hold; "" for nothing beyond the summary.
        refused: The file is refused as a whole.
    """

    suffix: str
    content: bytes
    rows: list[dict[str, Any] | None] = field(default_factory=lambda: list(TWIN))
    options: tuple[str, ...] = ()
    says: str = ""
    refused: bool = False


def _parquet(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


def _arrow(write: Callable[[pa.Table, io.BytesIO], None]) -> bytes:
    stream = io.BytesIO()
    write(pa.Table.from_pylist(TWIN), stream)
    return stream.getvalue()


def _ipc_stream(table: pa.Table, stream: io.BytesIO) -> None:
    with ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)


def _one(references: list[str], prediction: str) -> list[dict[str, Any] | None]:
    return [{"references": references, "prediction": prediction}]


CSV = b"references,prediction\n\"['cat', 'kitten']\",a cat\n['2'],2\n"
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in TWIN)
SQUAD = [
    {"answers": {"text": ["cat", "kitten"], "answer_start": [1, 2]}, "prediction": "a cat"},
    {"answers": {"text": ["2"], "answer_start": [0]}, "prediction": "2"},
]
VQA = [{"answers": [{"answer": "cat", "answer_confidence": "yes"}, {"answer": "kitten"}], "prediction": "a cat"}]
CATEGORICAL = pa.table(
    {"references": [["cat", "kitten"], ["2"]], "prediction": pa.array(["a cat", "2"]).dictionary_encode()}
)
FILES = {
    "pandas-lists": RealFile(".csv", CSV),
    "pandas-lists-written-twice": RealFile(
        ".csv",
        b"""references,prediction\n"[""['cat', 'kitten']""]",cat\n""",
        _one(["['cat', 'kitten']"], "cat"),
        says="is a list entry that looks like a list",
    ),
    "json-lists-as-text-in-a-list": RealFile(
        ".jsonl",
        b'{"references": ["[\\"cat\\"]"], "prediction": "cat"}\n',
        _one(['["cat"]'], "cat"),
        says="is a list entry that looks like a list",
    ),
    "pandas-arrays-and-index": RealFile(".csv", b",references,prediction\n0,['cat' 'kitten'],a cat\n1,['2'],2\n"),
    "pandas-tuples": RealFile(".csv", b"references,prediction\n\"('cat', 'kitten')\",a cat\n\"('2',)\",2\n"),
    "pandas-sets": RealFile(".csv", b"references,prediction\n\"{'cat', 'kitten'}\",a cat\n{'2'},2\n"),
    "pandas-quoted": RealFile(
        ".csv",
        b'"references","prediction"\n"[\'cat\', \'kitten\']","a\nb"\n"[\'2\']","say ""x"""\n',
        [{"references": ["cat", "kitten"], "prediction": "a\nb"}, {"references": ["2"], "prediction": 'say "x"'}],
    ),
    "pandas-numpy-print-of-mixed-quotes": RealFile(
        ".csv", b'references,prediction\n"[""it\'s"" \'b\']",b\n', _one(["it's", "b"], "b")
    ),
    "pandas-whole-numbers-beside-a-missing-one": RealFile(
        ".csv",
        b"references,prediction\n2,2.0\n7,\n",
        [{"references": ["2"], "prediction": "2"}, {"references": ["7"], "prediction": ""}],
        says='whole numbers are written as "2.0"',
    ),
    "pandas-nan": RealFile(
        ".csv",
        b"references,prediction\na,x\nb,NaN\nc,<NA>\n",
        [{"references": [each], "prediction": answer} for each, answer in (("a", "x"), ("b", ""), ("c", ""))],
    ),
    "python-none": RealFile(
        ".csv",
        b"references,prediction\na,x\nb,None\n",
        [{"references": ["a"], "prediction": "x"}, {"references": ["b"], "prediction": "None"}],
        says="--missing None",
    ),
    "python-none-declared": RealFile(
        ".csv",
        b"references,prediction\na,x\nb,None\n",
        [{"references": ["a"], "prediction": "x"}, {"references": ["b"], "prediction": ""}],
        ("--missing", "None"),
    ),
    "pandas-truth-values": RealFile(
        ".csv", b"references,prediction\nyes,True\n", _one(["yes"], "True"), says="truth values are read as the words"
    ),
    "pandas-truth-values-as-references": RealFile(
        ".csv", b"references,prediction\nTrue,True\n", _one(["True"], "True")
    ),
    "pandas-floats": RealFile(
        ".csv",
        b"references,prediction\n2,2.0\n3.5,3.5\n",
        [{"references": ["2"], "prediction": "2"}, {"references": ["3.5"], "prediction": "3.5"}],
        says='written as "2.0" and read without',
    ),
    "whole-numbers-beside-words": RealFile(
        ".csv",
        b"references,prediction\n2,2.0\na,cat\n",
        [{"references": ["2"], "prediction": "2.0"}, {"references": ["a"], "prediction": "cat"}],
        says='written as "2.0" and left unchanged, because other cells are not whole numbers',
    ),
    "pandas-numpy-scalars": RealFile(
        ".csv", b"references,prediction\n\"[np.str_('cat'), 'kitten']\",a cat\n[np.str_('2')],2\n"
    ),
    "pandas-numpy-print-of-numbers": RealFile(
        ".csv", b"references,prediction\n[2. 3.5],2\n", _one(["2", "3.5"], "2"), says="is read as 2 references"
    ),
    "pandas-list-with-nan": RealFile(
        ".csv", b"references,prediction\n\"['cat', nan]\",cat\n", [None], says="is an unreadable list"
    ),
    "list-as-prediction": RealFile(
        ".csv",
        b"references,prediction\ncat,\"['cat', 'dog']\"\n",
        _one(["cat"], "['cat', 'dog']"),
        says="looks like a list or an object, but is read as one string",
    ),
    "object-as-prediction": RealFile(
        ".csv",
        b"references,prediction\ncat,\"{'text': 'cat', 'score': 0.5}\"\n",
        _one(["cat"], "{'text': 'cat', 'score': 0.5}"),
        says="looks like a list or an object",
    ),
    "one-bar-of-many": RealFile(
        ".csv",
        b"references,prediction\n" + b"a,a\n" * 9 + b"cat|kitten,cat\n",
        [*_one(["a"], "a") * 9, *_one(["cat|kitten"], "cat")],
        says="1 of 10 cells, for instance 'cat|kitten', look like lists",
    ),
    "a-bar-far-behind": RealFile(
        ".csv",
        b"references,prediction\n" + b"a,a\n" * 1500 + b"cat|kitten,None\n",
        [*_one(["a"], "a") * 1500, *_one(["cat|kitten"], "None")],
        says="--missing None",
    ),
    "html-entities": RealFile(".csv", b"references,prediction\nR&amp;D,x\n", _one(["R&amp;D"], "x")),
    "postgres-arrays": RealFile(
        ".csv",
        b'references,prediction\n"{cat,kitten}",cat\n',
        _one(["{cat,kitten}"], "cat"),
        says="look like lists but are read as one string each. If they are lists, write them as JSON",
    ),
    "references-by-line": RealFile(
        ".csv",
        b'references,prediction\n"cat\nkitten",cat\n',
        _one(["cat\nkitten"], "cat"),
        says="use --reference-separator '\\n'",
    ),
    "two-words-for-nothing": RealFile(
        ".csv",
        b"references,prediction\na,None\nb,-\n",
        [*_one(["a"], "None"), *_one(["b"], "-")],
        says="use --missing - --missing None",
    ),
    "csv-under-another-name": RealFile(".jsonl", CSV, [None] * 3, says="use --input-format"),
    "pandas-records": RealFile(".json", json.dumps(TWIN).encode()),
    "pandas-table": RealFile(".json", json.dumps({"schema": {}, "data": TWIN}).encode()),
    "pandas-split": RealFile(
        ".json",
        b'{"columns":["references","prediction"],"index":[0,1],"data":[[["cat","kitten"],"a cat"],[["2"],"2"]]}',
    ),
    "pandas-columns": RealFile(
        ".json", b'{"references":{"0":["cat"]},"prediction":{"0":"cat"}}', says='orient="records"', refused=True
    ),
    "pandas-lines": RealFile(".jsonl", LINES),
    "json-numbers": RealFile(
        ".jsonl", b'{"references": [1989, 2.0, 2.5], "prediction": 1989}', _one(["1989", "2", "2.5"], "1989")
    ),
    "json-truth-values": RealFile(
        ".jsonl",
        b'{"references": ["yes"], "prediction": true}',
        [None],
        says="prediction is True, a truth value: write",
    ),
    "json-nan": RealFile(".jsonl", b'{"references": ["a"], "prediction": NaN}', _one(["a"], "")),
    "json-null": RealFile(".jsonl", b'{"references": ["a"], "prediction": null}', _one(["a"], "")),
    "json-list-in-a-list": RealFile(
        ".jsonl", b'{"references": [["a"], ["b"]], "prediction": "a"}', [None], says="references[0] is a list in a list"
    ),
    "json-list-as-text": RealFile(
        ".jsonl",
        b'{"references": "[\'cat\', \'kitten\']", "prediction": "a cat"}',
        [TWIN[0]],
        says="is read as 2 references",
    ),
    "json-interval": RealFile(
        ".jsonl", b'{"references": "[0, 1]", "prediction": "[0, 1]"}', _one(["[0, 1]"], "[0, 1]")
    ),
    "csv-list-of-numbers": RealFile(
        ".csv",
        b'references,prediction\n"[0, 1]",1\n',
        _one(["0", "1"], "1"),
        says="'[0, 1]' is read as 2 references. If it is one answer, write it as a list of one string: [\"[0, 1]\"]",
    ),
    "polars-separated": RealFile(
        ".csv",
        b"references,prediction\ncat;kitten,a cat\n2,2\n",
        options=("--reference-separator", ";"),
    ),
    "semicolons-not-split": RealFile(
        ".csv",
        b"references,prediction\ncat;kitten,a cat\ntwo;2,2\n",
        [{"references": ["cat;kitten"], "prediction": "a cat"}, {"references": ["two;2"], "prediction": "2"}],
        says="use --reference-separator ';'",
    ),
    "bars-split": RealFile(
        ".tsv", b"references\tprediction\ncat | kitten\ta cat\n2\t2\n", options=("--reference-separator", "|")
    ),
    "bars-not-split": RealFile(
        ".jsonl",
        b'{"references": "cat | kitten", "prediction": "a"}',
        _one(["cat | kitten"], "a"),
        says="--reference-separator '|'",
    ),
    "lists-that-cannot-be-read": RealFile(
        ".csv",
        b"references,prediction\n['cat' ... 'dog'],cat\n",
        [None],
        says="is an unreadable list (['cat' ... 'dog']…). Write it as JSON",
    ),
    "datasets-squad-lines": RealFile(".jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in SQUAD)),
    "datasets-squad-csv": RealFile(
        ".csv",
        b"answers,prediction\n\"{'text': array(['cat'], dtype=object), 'answer_start': array([1])}\",a cat\n",
        _one(["cat"], "a cat"),
    ),
    "datasets-squad-csv-cut": RealFile(
        ".csv",
        b"answers,prediction\n\"{'text': array(['cat', ..., 'dog'], dtype=object)}\",a cat\n",
        [None],
        says="answers is an object that cannot be parsed",
    ),
    "datasets-squad-printed": RealFile(
        ".csv", b"answers,prediction\n\"{'text': ['cat', 'kitten'], 'answer_start': [1, 2]}\",a cat\n", [TWIN[0]]
    ),
    "datasets-arrow": RealFile(".arrow", _arrow(_ipc_stream)),
    "vqa-annotators": RealFile(".jsonl", json.dumps(VQA[0]).encode(), [TWIN[0]]),
    "triviaqa-answer": RealFile(
        ".jsonl",
        b'{"answer": {"aliases": ["cat", "kitten"], "value": "cat"}, "prediction": "a cat"}',
        [],
        says="Use --map references=answer.aliases or --map references=answer.value",
        refused=True,
    ),
    "triviaqa-aliases": RealFile(
        ".jsonl",
        b'{"answer": {"aliases": ["cat", "kitten"], "value": "cat"}, "prediction": "a cat"}',
        [TWIN[0]],
        ("--map", "references=answer.aliases"),
    ),
    "excel-utf8": RealFile(".csv", b"\xef\xbb\xbf" + CSV.replace(b"\n", b"\r\n")),
    "excel-german": RealFile(".csv", b"\xef\xbb\xbfReferences;Prediction \r\n\"['cat', 'kitten']\";a cat\r\n2;2\r\n"),
    "excel-told-delimiter": RealFile(
        ".csv", b"sep=;\r\nreferences;prediction\r\n\"['cat', 'kitten']\";a cat\r\n2;2\r\n"
    ),
    "excel-unicode-text": RealFile(
        ".csv", "references\tprediction\r\n['cat', 'kitten']\ta cat\r\n2\t2\r\n".encode("utf-16"), options=()
    ),
    "utf16-without-a-mark": RealFile(".csv", CSV.decode().encode("utf-16-le")),
    "utf16-without-a-mark-big-endian": RealFile(".jsonl", LINES.decode().encode("utf-16-be")),
    "parquet-under-another-name": RealFile(
        ".csv", _parquet(pa.Table.from_pylist(TWIN)), says="is a Parquet file. Use --input-format", refused=True
    ),
    "workbook-under-another-name": RealFile(".csv", b"PK\x03\x04..", says="Save the sheet as CSV UTF-8", refused=True),
    "gzip-under-another-name": RealFile(".csv", gzip.compress(CSV), says="Rename it to end in .gz", refused=True),
    "excel-mac-line-ends": RealFile(".csv", CSV.replace(b"\n", b"\r")),
    "excel-cp1252": RealFile(
        ".csv", b"references,prediction\ncaf\xe9,x\n", [None], says="is not UTF-8. Save the file as UTF-8, or use"
    ),
    "excel-cp1252-declared": RealFile(
        ".csv", b"references,prediction\ncaf\xe9,x\n", _one(["café"], "x"), ("--encoding", "cp1252")
    ),
    "excel-dates": RealFile(
        ".csv", b"references,prediction\n3-May,x\n", _one(["3-May"], "x"), says="'3-May' looks like a date"
    ),
    "excel-rounded": RealFile(
        ".csv",
        b"references,prediction\n1.23E+11,x\n",
        _one(["1.23E+11"], "x"),
        says="number that a spreadsheet rounded",
    ),
    "excel-errors": RealFile(
        ".csv", b"references,prediction\na,#NAME?\n", [None], says="prediction is #NAME?, a spreadsheet's error"
    ),
    "excel-workbook": RealFile(".xlsx", b"PK\x03\x04", says="Save the sheet as CSV UTF-8", refused=True),
    "header-twice": RealFile(
        ".csv", b"references,prediction,prediction\na,b,c\n", says="the header repeats prediction", refused=True
    ),
    "postgres-null": RealFile(".tsv", b"references\tprediction\na\t\\N\n", _one(["a"], "")),
    "gzip-lines": RealFile(".jsonl.gz", gzip.compress(LINES)),
    "gzip-csv": RealFile(".csv.gz", gzip.compress(CSV)),
    "gzip-cut": RealFile(".csv.gz", gzip.compress(CSV * 999)[:-40], says="is not a complete gzip file", refused=True),
    "powershell-lines": RealFile(".jsonl", LINES.decode().replace("\n", "\r\n").encode("utf-16")),
    "parquet-arrow": RealFile(".parquet", _parquet(pa.Table.from_pylist(TWIN))),
    "parquet-categorical": RealFile(".parquet", _parquet(CATEGORICAL)),
    "parquet-strings": RealFile(
        ".parquet",
        _parquet(
            pa.table(
                {"references": ["['cat', 'kitten']", "2"], "prediction": pa.array(["a cat", "2"], pa.large_string())}
            )
        ),
        says="is read as 2 references",
    ),
    "parquet-numbers": RealFile(
        ".parquet",
        _parquet(pa.table({"references": [[2], [7]], "prediction": pa.array([2.0, None])})),
        [{"references": ["2"], "prediction": "2"}, {"references": ["7"], "prediction": ""}],
    ),
    "parquet-decimals": RealFile(
        ".parquet",
        _parquet(pa.table({"references": ["2.50"], "prediction": [Decimal("2.50")]})),
        _one(["2.50"], "2.50"),
    ),
    "parquet-dates": RealFile(
        ".parquet",
        _parquet(pa.table({"references": ["3 May"], "prediction": pa.array([0], pa.timestamp("us"))})),
        [None],
        says="prediction is a datetime (1970-01-01 00:00:00): dates can be written in many ways",
    ),
    "feather": RealFile(".feather", _arrow(feather.write_feather)),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_its_twin_or_refused(name: str, command: Command, tmp_path: Path) -> None:
    real = FILES[name]
    path = tmp_path / f"rows{real.suffix}"
    path.write_bytes(real.content)
    sent: list[types_pb2.Item] = []

    def score(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
        sent.extend(request.items)
        return answer(request)

    done = command("score", path, *real.options, "--fail-on", "never", stub=StubTransport(score))
    if real.refused:
        assert done.exit_code == 2, done.output
        assert real.says in " ".join(done.stderr.split())
        assert not sent
        return
    assert done.exit_code == 0, done.output
    # Batches of a long file are under way side by side, and may come in any order.
    assert Counter((tuple(item.references), item.prediction) for item in sent) == Counter(
        (tuple(row["references"]), row["prediction"]) for row in real.rows if row is not None
    )
    written = [json.loads(line)["scores"]["smile"] for line in done.stdout.splitlines()]
    assert [row is None for row in real.rows] == [score["status"] == "INVALID_INPUT" for score in written]
    told = done.stderr + "".join(score.get("message", "") for score in written)
    assert real.says in told
    if not real.says:
        assert "column" not in done.stderr, "nothing to tell of a file that is read without doubt"
