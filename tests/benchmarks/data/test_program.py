"""`python -m benchmarks.data`, with files on a real HTTP server and in a folder."""

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.data.__main__ import main
from benchmarks.data.convert import evouna
from benchmarks.data.sets import TABLE, read_table
from click.testing import CliRunner, Result
from tests.benchmarks.data.sources_in_form import question, write_evouna


class Site:
    """A server over a folder that counts what is asked for and can end a body early."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.asked: list[str] = []
        self.torn: set[str] = set()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.removeprefix("/")
                site.asked.append(name)
                path = site.directory / name
                if not path.is_file():
                    self.send_error(404)
                    return
                body = path.read_bytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if name in site.torn else body)

            def log_message(self, *_: Any) -> None:
                """Nothing on stderr."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    directory = tmp_path / "public"
    directory.mkdir()
    write_evouna(directory, nq=[question(fid="ä")], tq=[question()])
    found = Site(directory)
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def rows_of(directory: Path) -> bytes:
    rows = evouna([directory / "NQ.json", directory / "TQ.json"])
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


@pytest.fixture
def table(tmp_path: Path, site: Site) -> Path:
    return write_table(tmp_path / "sets.toml", site)


def write_table(path: Path, site: Site, *, rows_sha256: str = "", sha256: dict[str, str] | None = None) -> Path:
    pinned = sha256 or {}
    sources = [
        f'{{ name = "{name}", url = "{site.address}/{name}"'
        + (f', sha256 = "{pinned[name]}" }}' if name in pinned else " }")
        for name in ("NQ.json", "TQ.json")
    ]
    path.write_text(
        f"""[sets.evouna]
file = "rows.jsonl"
rows_sha256 = "{rows_sha256 or hashlib.sha256(rows_of(site.directory)).hexdigest()}"
rows = 10
licence = "Apache-2.0"
citation = "us"
made = "small"
sources = [{", ".join(sources)}]
"""
    )
    return path


def program(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_rows_are_downloaded_and_made_once(tmp_path: Path, site: Site, table: Path) -> None:
    data = tmp_path / "data"
    done = program("get", "--data", data, "--table", table)
    assert done.exit_code == 0, done.output
    assert (data / "rows.jsonl").read_bytes() == rows_of(site.directory)
    assert f"{data / 'rows.jsonl'}: 10 rows (Apache-2.0; us)" in done.output
    assert site.asked == ["NQ.json", "TQ.json"]
    assert [path.name for path in (data / ".downloads").rglob("*") if path.is_file()] == [".lock"]
    again = program("get", "evouna", "--data", data, "--table", table)
    assert (again.exit_code, len(site.asked)) == (0, 2)
    assert "already there" in again.output
    # Somebody's edit is not taken for the rows.
    (data / "rows.jsonl").write_text("{}\n")
    assert program("get", "--data", data, "--table", table).exit_code == 0
    assert (data / "rows.jsonl").read_bytes() == rows_of(site.directory)


def test_a_download_that_broke_goes_on_where_it_stopped(tmp_path: Path, site: Site, table: Path) -> None:
    data = tmp_path / "data"
    site.torn.add("TQ.json")
    done = program("get", "--data", data, "--table", table)
    assert done.exit_code == 1
    assert f"Error: evouna: cannot download {site.address}/TQ.json: " in done.output
    assert "--from" in done.output
    assert not (data / "rows.jsonl").exists()
    site.torn.clear()
    assert program("get", "--data", data, "--table", table).exit_code == 0
    assert site.asked == ["NQ.json", "TQ.json", "TQ.json"]


def test_what_is_not_there_or_nobody_serves_is_told(tmp_path: Path, site: Site, table: Path) -> None:
    (site.directory / "NQ.json").unlink()
    done = program("get", "--data", tmp_path / "data", "--table", table)
    assert (done.exit_code, "404" in done.output, len(done.output.splitlines())) == (1, True, 1)
    site.server.shutdown()
    site.server.server_close()
    done = program("get", "--data", tmp_path / "data", "--table", table)
    assert (done.exit_code, "refused" in done.output, len(done.output.splitlines())) == (1, True, 1)


def test_a_source_that_is_not_the_pinned_one_is_refused(tmp_path: Path, site: Site) -> None:
    table = write_table(tmp_path / "sets.toml", site, sha256={"NQ.json": "0" * 64})
    done = program("get", "--data", tmp_path / "data", "--table", table)
    assert done.exit_code == 1
    assert f"the table pins {'0' * 64}" in done.output
    assert not list((tmp_path / "data").rglob("*.json*"))
    pinned = hashlib.sha256((site.directory / "NQ.json").read_bytes()).hexdigest()
    write_table(tmp_path / "sets.toml", site, sha256={"NQ.json": pinned})
    assert program("get", "--data", tmp_path / "data", "--table", table).exit_code == 0


def test_other_rows_are_refused_unless_asked_for(tmp_path: Path, site: Site) -> None:
    data, table = tmp_path / "data", write_table(tmp_path / "sets.toml", site, rows_sha256="1" * 64)
    done = program("get", "--data", data, "--table", table)
    assert done.exit_code == 1
    assert f"published results used {'1' * 64}. Accept them with --other-rows" in done.output
    assert not (data / "rows.jsonl").exists()
    done = program("get", "--data", data, "--table", table, "--other-rows")
    assert (done.exit_code, "NOT THE ROWS" in done.output) == (0, True)
    assert (data / "rows.jsonl").read_bytes() == rows_of(site.directory)


@pytest.mark.parametrize("what", ["sources", "rows"])
def test_a_local_copy_is_read_and_left_as_it_is(tmp_path: Path, site: Site, table: Path, what: str) -> None:
    copy = site.directory
    if what == "rows":
        copy = tmp_path / "copy"
        copy.mkdir()
        (copy / "rows.jsonl").write_bytes(rows_of(site.directory))
    before = {path: path.read_bytes() for path in copy.iterdir()}
    done = program("get", "--data", tmp_path / "data", "--table", table, "--from", copy)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "data" / "rows.jsonl").read_bytes() == rows_of(site.directory)
    assert site.asked == []
    assert {path: path.read_bytes() for path in copy.iterdir()} == before


def test_a_folder_without_the_rows_is_told(tmp_path: Path, site: Site, table: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "TQ.json").write_text("[]")
    done = program("get", "--data", tmp_path / "data", "--table", table, "--from", tmp_path / "copy")
    assert done.exit_code == 1
    assert f"has neither rows.jsonl nor its sources NQ.json. Download these from {site.address}/NQ.json" in done.output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("get", "evona"), 2, "unknown set evona. Sets are: evouna"),
        (("get", "--table", "/nowhere.toml"), 1, "/nowhere.toml: [Errno 2]"),
    ],
)
def test_wrong_names_are_told(tmp_path: Path, table: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = program(*arguments, "--data", tmp_path / "data", *(() if "--table" in arguments else ("--table", table)))
    assert (done.exit_code, said in done.output) == (code, True), done.output


def test_our_own_table_has_addresses_at_commits_licences_and_digests() -> None:
    listed = program("list")
    assert listed.exit_code == 0, listed.output
    sets = read_table(TABLE)
    assert set(sets) == {"evouna", "nq301"}
    for name, labelled in sets.items():
        assert f"{name}: {labelled.file}, {labelled.rows} rows, {labelled.licence}" in listed.output
        for source in labelled.sources:
            assert source.url.startswith("https://raw.githubusercontent.com/")
            assert len(source.url.split("/")[5]) == 40, "a commit, not a branch"
            assert source.url in listed.output
