"""Inputs by URL, on file systems of fsspec."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.client.cli.conftest import Command, read_rows

from gradewire.cli.input.records import Reading, count_rows, expanded, read_records
from gradewire.cli.input.urls import is_url, place_errors, without_keys
from gradewire.cli.problems import InputError

ROW = {"references": ["a", "b"], "prediction": "c"}


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    """A file system that is not this machine's."""
    found = fsspec.filesystem("memory")
    yield found
    found.rm("/urls", recursive=True)


def put_all(memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    line = json.dumps(ROW).encode() + b"\n"
    memory.pipe_file("/urls/1.jsonl", line * 3)
    memory.pipe_file("/urls/2.jsonl.gz", gzip.compress(line * 2))
    memory.pipe_file("/urls/3.csv", b'references,prediction\n"[""a"", ""b""]",c\n')
    table = pa.Table.from_pylist([ROW])
    pq.write_table(table, tmp_path / "4.parquet")
    with pa.OSFile(str(tmp_path / "5.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    for name in ("4.parquet", "5.arrow"):
        memory.put_file(str(tmp_path / name), f"/urls/{name}")


def test_every_format_is_read_by_url_and_pattern(memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    put_all(memory, tmp_path)
    paths = expanded(["memory://urls/*"])
    assert [path.rsplit("/", 1)[-1] for path in paths] == ["1.jsonl", "2.jsonl.gz", "3.csv", "4.parquet", "5.arrow"]
    records = list(read_records(paths, Reading()))
    assert [record.index for record in records] == list(range(8))
    assert [record.fields for record in records if not record.file.endswith("csv")] == [ROW] * 7
    assert count_rows(paths, Reading()) == 8


def test_score_reads_a_url(command: Command, memory: fsspec.AbstractFileSystem) -> None:
    memory.pipe_file("/urls/a.jsonl", json.dumps(ROW).encode())
    done = command("score", "memory://urls/a.jsonl", "--metrics", "smile", "--quiet")
    assert done.exit_code == 0, done.output
    assert [row["scores"]["smile"]["score"] for row in read_rows(done.stdout)] == [0.01]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nowhere://a/b.jsonl", "Protocol not known: nowhere"),
        ("memory://urls/none.jsonl", "memory://urls/none.jsonl: "),
        ("file:///no/such/file.jsonl", "No such file or directory"),
    ],
)
def test_a_url_that_cannot_be_read_is_an_error_that_names_it(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(read_records([url], Reading()))


class _ClosedStore(fsspec.AbstractFileSystem):
    """A store that refuses with an error of its own package, which is none of the operating system's."""

    protocol = "closed"

    def _refuse(self, *_: object, **__: object) -> None:
        raise LookupError("no credentials were found")

    open = glob = _refuse


@pytest.mark.parametrize("name", ["a.jsonl", "*.jsonl"])
def test_what_a_store_raises_is_an_error_that_names_the_url(name: str) -> None:
    fsspec.register_implementation("closed", _ClosedStore, clobber=True)
    with pytest.raises(InputError, match=r"closed://bucket/.*\.jsonl: no credentials were found"):
        list(read_records(expanded([f"closed://bucket/{name}"]), Reading()))


def test_a_pattern_that_matches_nothing_is_refused(memory: fsspec.AbstractFileSystem) -> None:
    memory.pipe_file("/urls/a.jsonl", b"")
    with pytest.raises(InputError, match=r"memory://urls/\*\.csv matches no file"):
        expanded(["memory://urls/*.csv"])


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("s3://bucket/a", True),
        ("file:///a", True),
        ("zip::file:///a.zip", True),
        ("simplecache::s3://bucket/a", True),
        ("a.jsonl", False),
        ("C:\\a.jsonl", False),
        ("a/b:c", False),
        ("-", False),
    ],
)
def test_urls_are_told_from_paths(path: str, *, url: bool) -> None:
    assert is_url(path) is url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:SECRET@host/a.jsonl", "http://…@host/a.jsonl"),
        ("https://host/a.jsonl?X-Amz-Signature=SECRET&X-Amz-Date=1", "https://host/a.jsonl?…"),
        ("no file at http://SECRET@host/a?key=SECRET here", "no file at http://…@host/a?… here"),
        ("s3://bucket/part-?.jsonl", "s3://bucket/part-?.jsonl"),
        ("rows/a@b?c=d.jsonl", "rows/a@b?c=d.jsonl"),
    ],
)
def test_keys_in_a_url_are_not_shown(url: str, shown: str) -> None:
    assert without_keys(url) == shown


def test_an_error_shows_no_key() -> None:
    url = "https://u:SECRET@host/a.jsonl?X-Amz-Signature=SECRET"
    with pytest.raises(InputError) as caught, place_errors(url):
        raise ValueError(f"403 for {url}")
    assert "SECRET" not in str(caught.value)
    assert "https://…@host/a.jsonl?…" in str(caught.value)
