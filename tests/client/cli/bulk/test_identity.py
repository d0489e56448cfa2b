"""What a run that is resumed has to share with the one before."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.client.cli.bulk.conftest import Bulk, answers

from gradewire.cli.bulk.identity import check_same, input_digests, save_run, saved_run
from gradewire.cli.bulk.parts import RUN_NAME
from gradewire.cli.problems import InputError
from gradewire.cli.run.manifest_file import reading_parameters
from gradewire.manifests import InputDigest, Machine, RunCounts, RunManifest, RunTimes, Versions, file_digest

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
    check_same(run.store.place, before, replace(now, machine=replace(RUN.machine, cores=64), counts=RunCounts(rows=9)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {**RUN.parameters, "part_rows": 64}}, "--part-rows was 1024 and is 64"),
        ({"parameters": {**RUN.parameters, "map": {"id": "n"}}}, "--map was nothing and is {'id': 'n'}"),
        ({"metrics": {"bleu": "bleu/1"}}, "--metrics were smile and are bleu"),
        (
            {"metrics": {"smile": "smile:v1/1?model=m@4567&sentence_weight=0.3"}},
            "model of smile was m@0123 and is m@4567",
        ),
        ({"inputs": (INPUT, INPUT)}, "it had 1 input files and now there are 2"),
        ({"inputs": (replace(INPUT, path="b.jsonl"),)}, "the input a.jsonl is now b.jsonl"),
        ({"inputs": (replace(INPUT, bytes=4, sha256="11"),)}, "a.jsonl has changed (3 bytes then, 4 now)"),
    ],
)
def test_what_differs_is_named(bulk: Callable[..., Bulk], changes: dict[str, Any], message: str) -> None:
    run = bulk(answers(1))
    with pytest.raises(InputError) as refused:
        check_same(run.store.place, RUN, replace(RUN, **changes))
    assert message in str(refused.value)
    assert "--overwrite" in str(refused.value)


def test_a_reference_set_that_may_have_grown_is_refused(bulk: Callable[..., Bulk]) -> None:
    run = bulk(answers(1))
    line = "cider/1?corpus=prepared&reference_set=prod"
    grows, stays = (replace(RUN, metrics={"cider": each}) for each in (line, f"{line}@{'0' * 32}"))
    check_same(run.store.place, stays, stays)
    with pytest.raises(InputError, match=r"cider counts over a reference set .* it may have grown.*--overwrite"):
        check_same(run.store.place, grows, grows)


def test_parts_of_which_nothing_says_what_they_are_made_with_are_refused(bulk: Callable[..., Bulk]) -> None:
    run = bulk(answers(1))
    run.run()
    with pytest.raises(InputError, match=r"has parts and no run\.manifest\.json.*--overwrite"):
        saved_run(run.store)


def test_a_broken_record_of_a_run_is_refused(bulk: Callable[..., Bulk]) -> None:
    run = bulk(answers(1))
    run.store.write(RUN_NAME, b"{}")
    with pytest.raises(InputError, match=r"is no manifest of gradewire.*--overwrite begins again"):
        saved_run(run.store)


def test_a_url_has_the_digest_of_its_file(bulk: Callable[..., Bulk]) -> None:
    run = bulk(answers(3))
    (path,) = run.source.paths
    (digest,) = input_digests(replace(run.source, paths=(f"file://{path}",)))
    assert (digest.bytes, digest.sha256) == (file_digest(Path(path)).bytes, file_digest(Path(path)).sha256)
