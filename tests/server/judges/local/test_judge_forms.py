"""Which judges there are and which form of one runs; no worker is started."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from tests.support.judges.smollm2 import smollm2_repository

from gradewire_models.judges.catalog import Form, catalog_judges, default_judge
from gradewire_models.judges.repository import load_judge
from gradewire_server.domain.items import Status
from gradewire_server.domain.ports import ModelStatus
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.local import judge as embedded
from gradewire_server.judges.local.judge import EmbeddedJudges
from gradewire_server.settings.judge import EmbeddedJudgeConfig

from .embedded_judge import NAME, Observed

INSTALL = "pip install 'gradewire[judge]'"


def listed(repository: Path, **options: str) -> dict[str, ModelStatus]:
    judges = EmbeddedJudges(EmbeddedJudgeConfig(repository, **options), Observed())  # type: ignore[arg-type]
    return {status.name: status for status in judges.listed()}


@pytest.mark.parametrize(("wanted", "exact", "runs"), [("auto", True, "int8"), ("auto", False, "gguf")])
def test_auto_takes_int8_where_the_processor_computes_it(
    monkeypatch: pytest.MonkeyPatch, wanted: str, runs: Form, *, exact: bool
) -> None:
    monkeypatch.setattr(embedded, "computes_int8", lambda: exact)
    judge = load_judge(smollm2_repository(), NAME)
    status = listed(smollm2_repository(), form=wanted)[NAME]
    assert status.state == "built"
    assert (status.digest, status.precision) == (judge.digests[runs], judge.numeric_classes[runs])
    assert status.kind == "judge"
    assert status.remarks == judge.remarks


async def test_int8_is_refused_where_it_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "computes_int8", lambda: False)
    status = listed(smollm2_repository(), form="int8")[NAME]
    assert status.state == "broken"
    assert f"gradewire models build {NAME} --form gguf" in status.message
    with pytest.raises(JudgeUnavailableError) as caught:
        await EmbeddedJudges(EmbeddedJudgeConfig(smollm2_repository(), form="int8"), Observed()).open(NAME)
    assert caught.value.failure.status is Status.MODEL_UNAVAILABLE


async def test_a_form_that_is_not_built_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = replace(load_judge(smollm2_repository(), NAME), forms=("int8",))
    monkeypatch.setattr(embedded, "load_judge", lambda *_: judge)
    with pytest.raises(JudgeUnavailableError, match=f"no form gguf. Run: gradewire models build {NAME} --form gguf"):
        await EmbeddedJudges(EmbeddedJudgeConfig(smollm2_repository(), form="gguf"), Observed()).open(NAME)


@pytest.mark.parametrize("form", ["gguf", "auto"])
async def test_without_llama_cpp_gguf_is_not_usable_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, form: Literal["gguf", "auto"]
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # as if it were not installed
    monkeypatch.setattr(embedded, "computes_int8", lambda: False)
    status = listed(smollm2_repository(), form=form)[NAME]
    assert (status.state, status.how_to_get) == ("broken", INSTALL)
    with pytest.raises(JudgeUnavailableError) as caught:
        await EmbeddedJudges(EmbeddedJudgeConfig(smollm2_repository(), form=form), Observed()).open(NAME)
    assert caught.value.failure.status is Status.MODEL_UNAVAILABLE
    assert INSTALL in caught.value.failure.message
    assert caught.value.failure.retry_after_s is None


async def test_a_llama_cpp_that_cannot_be_loaded_is_no_lost_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('libgomp.so.1: no such file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # of the worker
    with pytest.raises(JudgeUnavailableError) as caught:
        await EmbeddedJudges(EmbeddedJudgeConfig(smollm2_repository(), form="gguf"), Observed()).open(NAME)
    assert caught.value.failure.status is Status.MODEL_UNAVAILABLE
    assert INSTALL in caught.value.failure.message
    assert "libgomp" not in caught.value.failure.message


def test_what_could_be_built_is_listed_with_the_way_to_get_it(tmp_path: Path) -> None:
    found = listed(tmp_path)
    assert found[default_judge().name].state == "missing"
    assert found[default_judge().name].how_to_get == f"gradewire models build {default_judge().name}"
    assert set(found) == {judge.name for judge in catalog_judges().values() if judge.buildable}


async def test_tests_only_is_said_whenever_it_is_opened(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def no_worker(*_: object) -> None:
        raise OSError("no worker here")

    monkeypatch.setattr(embedded, "open_judge", no_worker)
    with pytest.raises(JudgeUnavailableError, match=r"cannot be opened\. Run"):
        await EmbeddedJudges(EmbeddedJudgeConfig(smollm2_repository()), Observed()).open(NAME)
    assert "for tests only" in caplog.text
