"""`gradewire bulk` before Ray is needed, and without it."""

import importlib.util
from pathlib import Path

import pytest
from tests.cli.bulk.conftest import answers
from tests.cli.conftest import Command, write_rows

from gradewire_cli.bulk.options import BulkOutput, usual_part_rows
from gradewire_cli.rows.columns import RowOptions
from gradewire_cli.rows.input_file import InputFile

WITHOUT_RAY = pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed here")


@WITHOUT_RAY
def test_without_ray_it_says_what_to_install(command: Command, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "a.jsonl", answers(2))
    done = command("bulk", file, tmp_path / "out.jsonl", "--embedded")
    assert (done.exit_code, "bulk needs ray. Run: pip install 'gradewire[ray]'" in done.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{file}",), "name at least one INPUT, then the OUTPUT"),
        (("-", "{folder}/out.jsonl"), "which standard input does not allow. Save the input to a file"),
        (("{file}", "{folder}/out.xlsx"), "cannot write .xlsx"),
        (("{file}", "{folder}/out.jsonl", "--resume", "--overwrite"), "are mutually exclusive"),
        (("{file}", "{file}"), "is also the input"),
        (("{folder}/none.jsonl", "{folder}/*.nothing", "{folder}/out.jsonl"), "matches no file"),
        (("{file}", "{folder}/no/such/out.jsonl"), "does not exist. Create it first"),
        (("{file}", "nowhere://x/out.jsonl"), "Protocol not known: nowhere"),
        (("{file}", "memory://x/out.jsonl?key=SECRET"), 'memory://x/out.jsonl?…: OUTPUT must not contain a "?"'),
        (("{file}", "memory://u:SECRET@x.com"), "cannot write .com"),
    ],
)
def test_what_makes_no_sense_is_refused(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    file = write_rows(tmp_path / "a.jsonl", answers(2))
    done = command("bulk", *(each.format(file=file, folder=tmp_path) for each in arguments))
    assert (done.exit_code, message in " ".join(done.output.split())) == (2, True), done.output
    assert "SECRET" not in done.output


def test_help_has_examples_and_exit_codes(command: Command) -> None:
    told = command("bulk", "--help-all").output
    for word in ("--resume", "--ray-address", "--part-rows", "s3://bucket", "Exit codes:", "OUTPUT.parts"):
        assert word in told


def test_parts_are_smaller_with_a_judge() -> None:
    assert (usual_part_rows(judged=False), usual_part_rows(judged=True)) == (1024, 32)


@pytest.mark.parametrize(
    ("output", "manifest", "place"),
    [
        ("a.jsonl", None, (".", "a.jsonl.manifest.json")),
        ("/runs/a.jsonl", None, ("/runs", "a.jsonl.manifest.json")),
        ("/a.jsonl", None, ("/", "a.jsonl.manifest.json")),
        ("runs/a/", None, ("runs/a", "manifest.json")),
        ("memory://bucket/runs/a.jsonl", None, ("memory://bucket/runs", "a.jsonl.manifest.json")),
        ("memory://bucket/runs/a/", None, ("memory://bucket/runs/a", "manifest.json")),
        ("memory://bucket/runs/a/", Path("here/m.json"), ("here", "m.json")),
    ],
)
def test_manifests_stand_beside_a_file_and_in_a_folder(
    output: str, manifest: Path | None, place: tuple[str, str]
) -> None:
    options = {"format_": None, "summary_json": None, "manifest": manifest, "resume": False, "overwrite": False}
    folder, name = BulkOutput.of(output, options).manifest_path
    assert (folder.path_or_url, name) == place


def test_the_rows_that_a_run_leaves_out_are_in_what_gives_the_same_again() -> None:
    where = {"model": frozenset({"b", "a"}), "split": frozenset({"test"})}
    source = InputFile(("a.jsonl",), RowOptions(where=where))
    assert source.where_arguments == ["--where", "model=a,b", "--where", "split=test"]
    assert "--where" not in source.arguments
