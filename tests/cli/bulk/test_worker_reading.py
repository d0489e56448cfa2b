"""What travels to workers, which run in another directory than the command."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.bulk.conftest import PART_ROWS, Bulk, answers
from tests.cli.conftest import answer, write_rows

from gradewire import Tls
from gradewire.testing import StubTransport
from gradewire_cli.bulk.parts import PartId, PartRows, PartStore
from gradewire_cli.bulk.pipeline import file_readers
from gradewire_cli.bulk.worker import PartScorer, absolute_name


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the command."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_places_of_this_machine_are_told_from_the_root_on(here: Path) -> None:
    assert absolute_name("in/a.jsonl") == f"{here}/in/a.jsonl"
    assert absolute_name("../a.jsonl") == f"{here}/../a.jsonl"
    assert absolute_name("/in/a.jsonl") == "/in/a.jsonl"
    assert absolute_name("a:b.jsonl") == f"{here}/a:b.jsonl"


@pytest.mark.parametrize("url", ["s3://bucket/in/a.jsonl", "memory://in/a.jsonl", "gs://b/a::b.jsonl"])
def test_urls_of_other_file_systems_stay(url: str) -> None:
    assert absolute_name(url) == url


def test_urls_of_files_are_told_from_the_root_on(here: Path) -> None:
    pytest.importorskip("fsspec")
    assert absolute_name("file://in/a.jsonl") == f"file://{here}/in/a.jsonl"
    assert absolute_name("file:///in/a.jsonl") == "file:///in/a.jsonl"
    assert absolute_name("simplecache::local://a.jsonl") == f"simplecache::file://{here}/a.jsonl"


def test_files_of_the_setup_are_told_from_the_root_on(bulk: Callable[..., Bulk], here: Path) -> None:
    setup = bulk(answers(1)).setup({})
    tls = Tls(root_certificates=Path("ca.pem"), certificate_chain=Path("c.pem"), private_key=Path("/k.pem"))
    made = replace(
        setup,
        connection=replace(setup.connection, cache_dir=Path("cache"), models_dir=Path("~/models"), tls=tls),
        plan=replace(setup.plan, pictures=Path()),
        store=PartStore("out.parts"),
    ).absolute()
    assert (made.connection.cache_dir, made.connection.models_dir) == (here / "cache", Path.home() / "models")
    assert made.connection.tls == Tls(
        root_certificates=here / "ca.pem", certificate_chain=here / "c.pem", private_key=Path("/k.pem")
    )
    assert (made.plan.pictures, made.store.path_or_url) == (here, f"{here}/out.parts")


def test_what_the_setup_does_not_name_stays_so(bulk: Callable[..., Bulk]) -> None:
    setup = bulk(answers(1)).setup({})
    assert setup.absolute() == setup


def test_a_run_of_relative_paths_is_the_same_from_another_directory(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "in").mkdir()
    rows = [*answers(PART_ROWS + 1, image="0.png"), {"id": "broken", "references": 1, "prediction": {}}]
    write_rows(here / "in" / "0.jsonl", rows)
    write_rows(here / "in" / "1.jsonl", rows)
    (here / "in" / "0.png").write_bytes(b"a picture")
    run = Bulk(PartStore("out.parts"), [Path("in/0.jsonl"), Path("in/1.jsonl")])
    readers = file_readers(run.source, [len(rows)] * 2, PART_ROWS, {}, Path("in"))
    worker = PartScorer(run.setup({}).absolute(), StubTransport(answer))
    expected = [list(reader.read()) for reader in readers]

    monkeypatch.chdir(tmp_path)
    found = [list(reader.read()) for reader in readers]
    assert found == expected
    parts = [item for items in found for item in items if isinstance(item, PartRows)]
    assert {row.file for part in parts for row in part.rows} == {"in/0.jsonl", "in/1.jsonl"}
    assert all(row.picture_digest for part in parts for row in part.rows if row.item is not None)
    records = [worker.score(part) for part in parts]
    worker.close()
    assert [record.error for record in records] == [""] * 4
    monkeypatch.chdir(here)
    assert run.store.parts() == {PartId(file, number): True for file in (0, 1) for number in (0, 1)}
    broken = run.rows()[PART_ROWS + 1]["scores"]["smile"]["message"]
    assert broken.startswith("in/0.jsonl line ")
