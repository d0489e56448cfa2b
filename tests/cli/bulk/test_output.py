"""The output that parts become, and the check that each row is there once."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
from tests.cli.bulk.conftest import PART_ROWS, Bulk, answers
from tests.cli.conftest import Command
from tests.support.syncs import Syncs

from gradewire_cli.bulk.output import Assembly, IncompleteError, check_same, input_digests, save_run, saved_run
from gradewire_cli.bulk.parts import RUN_NAME, PartId
from gradewire_cli.problems import InputError
from gradewire_cli.results.manifest import InputDigest, Machine, RunCounts, RunManifest, RunTimes, Versions
from gradewire_cli.results.manifest_entries import file_digest, reading_parameters

Make = Callable[..., Bulk]


def assembly(run: Bulk) -> Assembly:
    return Assembly(store=run.store, parts=run.store.parts(), ends=run.ends)


def checked(run: Bulk) -> list[Any]:
    rows: list[Any] = []
    assembly(run).check(rows.append)
    return rows


def test_the_output_is_what_score_writes(bulk: Make, command: Command, tmp_path: Path) -> None:
    run = bulk(answers(PART_ROWS * 2 + 1), answers(2))
    run.run()
    assembly(run).write(str(tmp_path / "bulk.jsonl"))
    assert command("score", *run.source.paths, "--out", tmp_path / "score.jsonl", "--metrics", "smile").exit_code == 0
    assert (tmp_path / "bulk.jsonl").read_bytes() == (tmp_path / "score.jsonl").read_bytes()
    assert [row["index"] for row in checked(run)] == list(range(11))


def test_a_table_is_what_score_writes(bulk: Make, command: Command, tmp_path: Path) -> None:
    run = bulk(answers(PART_ROWS + 1))
    run.run()
    assembly(run).write(str(tmp_path / "bulk.parquet"))
    assert command("score", *run.source.paths, "--out", tmp_path / "s.parquet", "--metrics", "smile").exit_code == 0
    assert pq.read_table(tmp_path / "bulk.parquet").equals(pq.read_table(tmp_path / "s.parquet"))
    assert not list(tmp_path.glob(".*"))


def test_an_output_may_be_on_another_file_system(bulk: Make, tmp_path: Path) -> None:
    run = bulk(answers(PART_ROWS + 1))
    run.run()
    assembly(run).write(str(tmp_path / "here.jsonl"))
    assembly(run).write("memory://assembled/there.jsonl")
    store = fsspec.filesystem("memory")
    assert store.cat_file("/assembled/there.jsonl") == (tmp_path / "here.jsonl").read_bytes()
    store.rm("/assembled", recursive=True)


def test_a_missing_part_is_refused(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS * 2))
    run.run()
    run.store.remove(PartId(0, 1).name(answered=True))
    with pytest.raises(IncompleteError, match="1 parts are missing"):
        checked(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [*lines, lines[-1]], "row 3 comes after row 3"),
        (lambda lines: lines[:-1], "have 7 rows, but the file has 8"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "row 0 comes after row 1"),
    ],
)
def test_rows_that_are_not_each_there_once_are_refused(
    bulk: Make, change: Callable[[list[bytes]], list[bytes]], message: str
) -> None:
    run = bulk(answers(PART_ROWS * 2))
    run.run()
    lines = run.store.read_part(PartId(0, 0), answered=True).splitlines(keepends=True)
    run.store.write_part(PartId(0, 0), b"".join(change(lines)), answered=True)
    with pytest.raises(IncompleteError, match=message):
        checked(run)


def test_every_part_is_an_output_by_itself(bulk: Make) -> None:
    run = bulk(answers(PART_ROWS * 2))
    run.run()
    names = [part.name(answered=True) for part in run.store.parts()]
    lines = [json.loads((Path(run.store.path_or_url) / name).read_text().splitlines()[0]) for name in names]
    assert [line["scores"]["smile"]["line"] for line in lines] == [run.lines["smile"]] * 2


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "out.csv"])
@pytest.mark.parametrize("place", ["", "file://"])
def test_an_output_outlasts_a_power_cut_before_its_parts_go(
    bulk: Make, tmp_path: Path, syncs: Syncs, place: str, name: str
) -> None:
    run = bulk(answers(PART_ROWS + 1))
    run.run()
    syncs.calls.clear()
    assembly(run).write(f"{place}{tmp_path / name}")
    syncs.assert_lasts(tmp_path / name)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("left_lines", [0, 1, 1.5])
def test_a_part_that_a_kill_left_unfinished_is_named(bulk: Make, number: int, left_lines: float) -> None:
    run = bulk(answers(PART_ROWS * 2 + 2))
    run.run()
    name = PartId(0, number).name(answered=True)
    lines = run.store.read(name).splitlines(keepends=True)
    # As a file system leaves it whose move is a copy.
    begun = lines[int(left_lines)][:20] if left_lines % 1 else b""
    run.store.write(name, b"".join(lines[: int(left_lines)]) + begun)
    with pytest.raises(
        IncompleteError, match=f"{name} is incomplete. Remove the file and score its rows again with --resume"
    ):
        checked(run)
    run.store.remove(name)
    run.run()
    assert len(checked(run)) == PART_ROWS * 2 + 2


RUN = RunManifest(
    command="bulk",
    versions=Versions(gradewire="0.1.0"),
    counts=RunCounts(rows=0),
    times=RunTimes(began_at="2026-11-25T15:00:00+00:00", wall_s=0.0, cpu_s=0.0),
    machine=Machine(processor="a processor", cores=2),
    metrics={"smile": "smile:v1/1?model=m@0123&sentence_weight=0.3"},
    inputs=(InputDigest(path="a.jsonl", bytes=3, sha256="00"),),
    parameters={"part_rows": 1024, "map": {}, "keep_columns": []},
)
INPUT = RUN.inputs[0]


def test_a_run_is_saved_and_the_same_one_goes_on(bulk: Callable[..., Bulk]) -> None:
    run = bulk(answers(1))
    assert saved_run(run.store) is None
    now = replace(RUN, parameters={**reading_parameters(run.source), "part_rows": 4})
    save_run(run.store, now)
    before = saved_run(run.store)
    assert before is not None
    check_same(
        run.store.path_or_url, before, replace(now, machine=replace(RUN.machine, cores=64), counts=RunCounts(rows=9))
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {**RUN.parameters, "part_rows": 64}}, "--part-rows was 1024, now 64"),
        ({"parameters": {**RUN.parameters, "map": {"id": "n"}}}, "--map was nothing, now {'id': 'n'}"),
        ({"metrics": {"bleu": "bleu/1"}}, "--metrics were smile, now bleu"),
        (
            {"metrics": {"smile": "smile:v1/1?model=m@4567&sentence_weight=0.3"}},
            "model of smile was m@0123, now m@4567",
        ),
        ({"inputs": (INPUT, INPUT)}, "the number of input files was 1, now 2"),
        ({"inputs": (replace(INPUT, path="b.jsonl"),)}, "the input a.jsonl is now b.jsonl"),
        ({"inputs": (replace(INPUT, bytes=4, sha256="11"),)}, "a.jsonl has changed (3 bytes before, 4 now)"),
    ],
)
def test_what_differs_is_named(bulk: Callable[..., Bulk], changes: dict[str, Any], message: str) -> None:
    run = bulk(answers(1))
    with pytest.raises(InputError) as refused:
        check_same(run.store.path_or_url, RUN, replace(RUN, **changes))
    assert message in str(refused.value)
    assert "--overwrite" in str(refused.value)


def test_a_reference_set_that_may_have_grown_is_refused(bulk: Callable[..., Bulk]) -> None:
    run = bulk(answers(1))
    line = "cider/1?corpus=prepared&reference_set=prod"
    grows, stays = (replace(RUN, metrics={"cider": each}) for each in (line, f"{line}@{'0' * 32}"))
    check_same(run.store.path_or_url, stays, stays)
    with pytest.raises(InputError, match=r"cider uses a reference set that may have changed.*--overwrite"):
        check_same(run.store.path_or_url, grows, grows)


def test_parts_of_which_nothing_says_what_they_are_made_with_are_refused(bulk: Callable[..., Bulk]) -> None:
    run = bulk(answers(1))
    run.run()
    with pytest.raises(InputError, match=r"contains parts, but .*run\.manifest\.json.*--overwrite"):
        saved_run(run.store)


def test_a_broken_record_of_a_run_is_refused(bulk: Callable[..., Bulk]) -> None:
    run = bulk(answers(1))
    run.store.write(RUN_NAME, b"{}")
    with pytest.raises(InputError, match=r"is not a gradewire manifest.*Use --overwrite to start again"):
        saved_run(run.store)


def test_a_url_has_the_digest_of_its_file(bulk: Callable[..., Bulk]) -> None:
    run = bulk(answers(3))
    (path,) = run.source.paths
    (digest,) = input_digests(replace(run.source, paths=(f"file://{path}",)))
    assert (digest.bytes, digest.sha256) == (file_digest(Path(path)).bytes, file_digest(Path(path)).sha256)
