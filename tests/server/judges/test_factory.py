"""Which judges a server has by its settings; nothing is reached for before somebody asks."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gradewire_models.judges.catalog import default_judge
from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure, Status
from gradewire_server.settings.engine import EngineConfig
from gradewire_server.settings.judge import EmbeddedJudgeConfig, JudgeConfig, RemoteJudgeConfig

NOWHERE = RemoteJudgeConfig(url="http://127.0.0.1:1/v1", model="some/model-7b")


async def engine_with(tmp_path: Path, judge: JudgeConfig) -> Backends:
    return await Backends.open(EngineConfig(tmp_path, judge=judge), CollectorRegistry())


async def test_the_catalogs_judge_is_the_default_one_and_says_how_to_get_it(tmp_path: Path) -> None:
    engine = await engine_with(tmp_path, JudgeConfig("embedded", embedded=EmbeddedJudgeConfig(tmp_path)))
    default = engine.ports.judge_models.status("")
    assert isinstance(default, Failure)
    assert default.status is Status.MODEL_UNAVAILABLE
    assert f"gradewire models build {default_judge().name}" in default.message
    assert {judge.name: judge.state for judge in engine.ports.judge_models.statuses() if judge.is_default} == {
        default_judge().name: "missing"
    }
    health = engine.judge_health()
    assert (health.configured, health.ready, health.trouble) == (True, False, "")  # nobody wanted it
    await engine.close()


@pytest.mark.parametrize("backend", ["openai", "decisions", "triton"])
async def test_a_judge_behind_a_server_is_there_before_it_is_reached(backend: str, tmp_path: Path) -> None:
    remote = NOWHERE if backend != "triton" else RemoteJudgeConfig(url="127.0.0.1:1", model="some/model-7b")
    engine = await engine_with(tmp_path, JudgeConfig(backend, remote=remote))  # type: ignore[arg-type]
    (judge,) = engine.ports.judge_models.statuses()
    assert (judge.name, judge.kind, judge.is_default) == ("some/model-7b", "judge", True)
    assert engine.judge_health().ready
    await engine.close()


async def test_without_one_the_engine_says_which_setting_turns_it_on(tmp_path: Path) -> None:
    engine = await engine_with(tmp_path, JudgeConfig())
    assert list(engine.ports.judge_models.statuses()) == []
    none = engine.ports.judge_models.status("")
    assert isinstance(none, Failure)
    assert "judge_backend" in none.message
    await engine.close()


async def test_a_preloaded_judge_that_cannot_be_had_is_told_and_delays_nothing(tmp_path: Path) -> None:
    config = JudgeConfig("embedded", preload=True, embedded=EmbeddedJudgeConfig(tmp_path))
    engine = await engine_with(tmp_path, config)
    health = engine.judge_health()
    assert not health.ready
    assert default_judge().name in health.trouble
    await engine.close()
