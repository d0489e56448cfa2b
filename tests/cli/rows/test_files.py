"""Inputs by URL, on file systems of fsspec."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Command, read_rows

from gradewire_cli.problems import InputError
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.files import display_names, file_errors, is_url, local_path
from gradewire_cli.rows.formats import Reading, read_file
from gradewire_cli.rows.input_file import InputFile, expanded

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
    source = InputFile(tuple(paths), RowOptions())
    assert [record.index for record in source.records()] == list(range(8))
    rows = [record.fields for path in paths if not path.endswith("csv") for record in read_file(path, Reading())]
    assert rows == [ROW] * 7
    assert source.count() == 8


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
        list(read_file(url, Reading()))


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
        [*map(list, (read_file(path, Reading()) for path in expanded([f"closed://bucket/{name}"])))]


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


def test_an_error_shows_no_key() -> None:
    url = "https://u:SECRET@host/a.jsonl?X-Amz-Signature=SECRET"
    with pytest.raises(InputError) as caught, file_errors(url):
        raise ValueError(f"403 for {url}")
    assert "SECRET" not in str(caught.value)
    assert "https://…@host/a.jsonl?…" in str(caught.value)


def test_files_are_called_without_keys_and_each_otherwise() -> None:
    paths = ["a@b.jsonl", "https://host/a?key=SECRET1", "https://host/b?key=SECRET", "https://host/a?key=SECRET2"]
    assert display_names(paths) == ["a@b.jsonl", "https://host/a?… (2)", "https://host/b?…", "https://host/a?… (4)"]


def signed(memory: fsspec.AbstractFileSystem, rows: dict[str, list[str]], signature: str) -> list[str]:
    """URLs with this signature of files with these lines."""
    urls = []
    for name, lines in rows.items():
        url = f"memory:///urls/{name}.jsonl?version=1&X-Amz-Signature=SECRET{signature}"
        memory.pipe_file(memory._strip_protocol(url), "".join(f"{line}\n" for line in lines).encode())
        urls.append(url)
    return urls


def test_nothing_that_is_written_or_told_has_the_key_of_a_url(
    command: Command, memory: fsspec.AbstractFileSystem, tmp_path: Path
) -> None:
    good = json.dumps(ROW)
    urls = signed(memory, {"a": [good, "{", good], "b": ["{"]}, "1")
    out = tmp_path / "out.jsonl"
    options = ("--metrics", "smile", "--input-format", "jsonl", "--fail-on", "never", "--group-by", "file")
    done = command("score", *urls, *options, "--out", out, "--summary-json", tmp_path / "summary.json")
    assert done.exit_code == 0, done.output
    shown = [f"memory:///urls/{name}.jsonl?…" for name in "ab"]
    rows = read_rows(out.read_text())
    assert [row["file"] for row in rows] == [shown[0]] * 3 + [shown[1]]
    assert rows[1]["scores"]["smile"]["message"].startswith(f"{shown[0]} line 2 is not JSON")
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert sorted(written) == ["out.jsonl", "out.jsonl.manifest.json", "summary.json"]
    for text in (done.output, *written.values()):
        assert "SECRET" not in text
    manifest = json.loads(written["out.jsonl.manifest.json"])
    assert [each["path"] for each in manifest["inputs"]] == shown
    assert manifest["notes"][0].startswith(f"{shown[1]}: the first rows are all unreadable ({shown[1]} line 1")
    assert shown[0] in manifest["reproduce"]


def test_a_run_is_resumed_from_files_with_new_signatures(
    command: Command, memory: fsspec.AbstractFileSystem, tmp_path: Path
) -> None:
    lines = {"a": [json.dumps(ROW)] * 2, "b": [json.dumps(ROW), "{"]}
    out = tmp_path / "out.jsonl"
    options = ("--metrics", "smile", "--input-format", "jsonl", "--fail-on", "never", "--out", out)
    assert command("score", *signed(memory, lines, "1"), *options).exit_code == 0
    whole = out.read_bytes()
    out.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    done = command("score", *signed(memory, lines, "2"), *options, "--resume")
    assert done.exit_code == 0, done.output
    assert out.read_bytes() == whole
    assert json.loads((tmp_path / "out.jsonl.manifest.json").read_text())["counts"]["scored_now"] == 1


def test_files_that_differ_in_what_is_not_shown_are_told_apart(
    command: Command, memory: fsspec.AbstractFileSystem, tmp_path: Path
) -> None:
    urls = [signed(memory, {"a": [json.dumps(ROW)]}, version)[0] for version in "12"]
    options = ("--metrics", "smile", "--input-format", "jsonl", "--group-by", "file", "--quiet")
    done = command("score", *urls, *options, "--summary-json", tmp_path / "summary.json")
    assert done.exit_code == 0, done.output
    shown = [f"memory:///urls/a.jsonl?… ({number})" for number in (1, 2)]
    assert [row["file"] for row in read_rows(done.stdout)] == shown
    told = (tmp_path / "summary.json").read_text()
    assert all(name in told for name in shown)
    assert "SECRET" not in told


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("memory://urls/none?key=SECRET.SECRET", "memory:///urls/none?…: unknown format (no suffix)"),
        ("memory://urls/none.jsonl?key=SECRET", "unknown format (.jsonl?…)"),
        ("memory://urls/no*.jsonl?key=SECRET", "no*.jsonl?… matches no file"),
    ],
)
def test_a_url_that_is_refused_shows_no_key(
    command: Command, memory: fsspec.AbstractFileSystem, url: str, shown: str
) -> None:
    memory.pipe_file("/urls/none?key=SECRET.SECRET", b"")
    if "*" not in url:
        memory.pipe_file("/urls/none.jsonl?key=SECRET", b"")
    done = command("score", url)
    assert done.exit_code == 2, done.output
    assert "SECRET" not in done.output
    assert shown in " ".join(done.output.split())


def test_a_url_may_be_one_of_this_machine(tmp_path: Path) -> None:
    assert local_path(f"file://{tmp_path}/a") == local_path(f"{tmp_path}/a") == tmp_path / "a"
    assert local_path("memory://urls/a") is None
