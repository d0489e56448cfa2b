"""What a run leaves when all parts are there; the parts are made without Ray."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.bulk.conftest import Bulk, answers

from gradewire_cli.bulk.command import BulkJob
from gradewire_cli.bulk.options import BulkOutput
from gradewire_cli.bulk.output import input_digests
from gradewire_cli.options.judge import JudgePrices
from gradewire_cli.options.metrics import MetricOptions
from gradewire_cli.results.manifest import RunManifest, read_manifest
from gradewire_cli.results.manifest_entries import file_digest, manifest_path


def ended(run: Bulk, output: str) -> RunManifest:
    written = BulkOutput(output, {"summary_json": None, "manifest": None, "part_rows": None})
    run.store = written.store
    run.store.create()
    run.run()
    job = BulkJob(
        source=run.source,
        metrics=MetricOptions(metrics="smile"),
        connection=run.connection,
        output=written,
        prices=JudgePrices(),
        quiet=True,
    )
    job.plan, job.lines, job.server_version = run.plan, run.lines, "stub"
    job._end(input_digests(run.source), run.ends)
    return read_manifest(manifest_path(Path(output.removeprefix("file://"))))


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_the_manifest_of_one_file_has_its_digest(bulk: Callable[..., Bulk], tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    manifest = ended(bulk(answers(3)), str(out))
    assert manifest.counts.rows == 3
    assert manifest.output == file_digest(out)


def test_an_output_by_url_has_none(bulk: Callable[..., Bulk], tmp_path: Path) -> None:
    assert ended(bulk(answers(3)), f"file://{tmp_path}/out.jsonl").output is None


def test_a_folder_of_parts_has_none(bulk: Callable[..., Bulk], tmp_path: Path) -> None:
    assert ended(bulk(answers(3)), f"{tmp_path}/out.parts/").output is None
