"""Input and output in an object store: a server of this machine that speaks S3, over HTTP, by the package s3fs."""

import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs
from moto.server import ThreadedMotoServer
from tests_bulk.conftest import Run, assert_same, read, read_lines, straight, write_rows

Start = Callable[..., Run]


@pytest.fixture(scope="module")
def store() -> Iterator[s3fs.S3FileSystem]:
    """A server, and the variables by which every process of a run finds it."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as variables:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "anybody",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            variables.setenv(name, value)
        yield s3fs.S3FileSystem(use_listings_cache=False)
    server.stop()


@pytest.fixture
def bucket(store: s3fs.S3FileSystem) -> str:
    """An empty bucket of the test's own."""
    name = f"bucket-{uuid.uuid4()}"
    store.mkdir(name)
    return name


def test_parquet_of_a_bucket_into_a_file_of_it(
    start: Start, tmp_path: Path, store: s3fs.S3FileSystem, bucket: str
) -> None:
    rows = read(write_rows(tmp_path / "rows.jsonl", 300))
    for name, own in (("a", rows[:170]), ("b", rows[170:])):
        with store.open(f"{bucket}/answers/{name}.parquet", "wb") as stream:
            pq.write_table(pa.Table.from_pylist(own), stream)
    run = start(f"s3://{bucket}/answers/*.parquet", f"s3://{bucket}/scores.jsonl", "--part-rows", "64")
    assert run.wait() == 0, run.told
    assert_same(read_lines(store.cat_file(f"{bucket}/scores.jsonl")), straight(tmp_path / "rows.jsonl", tmp_path))
    # No part and nothing half written is left.
    assert sorted(store.find(bucket)) == [
        f"{bucket}/answers/a.parquet",
        f"{bucket}/answers/b.parquet",
        f"{bucket}/scores.jsonl",
        f"{bucket}/scores.jsonl.manifest.json",
    ]
    again = start(f"s3://{bucket}/answers/*.parquet", f"s3://{bucket}/scores.jsonl", "--part-rows", "64")
    assert (again.wait(), f"s3://{bucket}/scores.jsonl is there already" in again.told) == (2, True), again.told


def test_a_killed_run_goes_on_from_the_parts_in_the_bucket(
    start: Start, tmp_path: Path, store: s3fs.S3FileSystem, bucket: str
) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 1500)
    store.put_file(str(rows), f"{bucket}/rows.jsonl")

    def parts() -> int:
        return len(store.glob(f"{bucket}/scores/part-*.done.jsonl"))

    first = start(f"s3://{bucket}/rows.jsonl", f"s3://{bucket}/scores/", "--part-rows", "50")
    first.wait_until(lambda: parts() >= 4)
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    first.end()
    left = parts()
    assert 4 <= left < 30
    other = start(f"s3://{bucket}/rows.jsonl", f"s3://{bucket}/scores/", "--part-rows", "51", "--resume")
    assert (other.wait(), "--part-rows was 50 and is 51" in other.told) == (2, True), other.told
    second = start(f"s3://{bucket}/rows.jsonl", f"s3://{bucket}/scores/", "--part-rows", "50", "--resume")
    assert second.wait() == 0, second.told
    names = sorted(store.glob(f"{bucket}/scores/part-*"))
    found = [row for name in names for row in read_lines(store.cat_file(name))]
    assert_same(found, straight(rows, tmp_path))
    assert store.exists(f"{bucket}/scores/manifest.json")


def test_a_bucket_that_is_not_there_is_an_error_and_is_not_made(
    start: Start, tmp_path: Path, store: s3fs.S3FileSystem
) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 10)
    for paths in (("s3://elsewhere/rows.jsonl", tmp_path / "out.jsonl"), (rows, "s3://elsewhere/out.jsonl")):
        run = start(*paths)
        assert (run.wait(), "Error: s3://elsewhere/" in run.told) == (2, True), run.told
        assert "Traceback" not in run.told
    assert not store.exists("elsewhere")


def test_a_store_that_does_not_answer_is_an_error(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "anybody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    run = start(write_rows(tmp_path / "rows.jsonl", 10), "s3://bucket/out.jsonl")
    assert (run.wait(), "Error: s3://bucket/out.jsonl" in run.told) == (2, True), run.told
    assert "Traceback" not in run.told
