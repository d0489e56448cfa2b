"""The judges on a GPU, as far as can be seen without one; tests/server/judges/remote/test_triton_vllm.py loads their
config.pbtxt into the real server."""

import json
from typing import Any

import kubernetes_validate
import pytest
import yaml
from tests.deploy.conftest import DEPLOY, ROOT, flags_of
from tests.deploy.rendering import of_kind

from gradewire_models.judges.catalog import find_judge
from gradewire_models.repository.config import read_config
from gradewire_server.settings.judge import ImageConfig, RemoteJudgeConfig

NAME = "qwen2.5-7b-instruct-awq"
SEEING = "qwen2.5-vl-7b-instruct-awq"
REPOSITORY = ROOT / "model_repo" / "vllm"


@pytest.fixture(scope="module")
def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "helm" / "judge-vllm.yaml").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.judge.yaml").read_text(encoding="utf-8"))
    return loaded["services"]


def test_the_model_has_one_name_everywhere(manifests: list[dict[str, Any]], compose: dict[str, Any]) -> None:
    (container,) = of_kind(manifests, "Deployment")["judge-vllm"]["spec"]["template"]["spec"]["containers"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted["model"] == f"/models/{NAME}"
    for arguments in (container["args"], compose["judge"]["command"]):
        assert flags_of(arguments)["load-model"] == NAME
    assert compose["gradewire"]["environment"]["GRADEWIRE_JUDGE_REMOTE_MODEL"] == NAME
    assert container["image"] == compose["judge"]["image"]


def test_it_may_write_the_weights_that_it_downloads(manifests: list[dict[str, Any]], compose: dict[str, Any]) -> None:
    judge, weights = compose["judge"], compose["weights"]
    assert judge["environment"]["HF_HOME"] == "/weights"
    assert [*weights["entrypoint"], *weights["command"]] == ["chown", judge["user"], "/weights"]
    assert (weights["user"], weights["cap_drop"], weights["cap_add"]) == ("0:0", ["ALL"], ["CHOWN"])
    assert set(weights["volumes"]) <= set(judge["volumes"])
    assert judge["depends_on"] == {"weights": {"condition": "service_completed_successfully"}}
    security = of_kind(manifests, "Deployment")["judge-vllm"]["spec"]["template"]["spec"]["securityContext"]
    assert security["fsGroup"] == security["runAsUser"]


def test_a_model_is_named_as_its_folder() -> None:
    assert sorted(path.name for path in REPOSITORY.iterdir()) == [NAME, SEEING]
    for name in (NAME, SEEING):
        config, _ = read_config(REPOSITORY / name / "config.pbtxt")
        assert (config.name, config.backend, config.max_batch_size) == (name, "vllm", 0)


@pytest.mark.parametrize("name", [NAME, SEEING])
def test_vllm_gives_as_many_alternatives_as_are_asked_for(name: str) -> None:
    engine = engine_of(name)
    assert engine["max_logprobs"] >= 20
    assert engine["enable_prefix_caching"]


@pytest.mark.parametrize("name", [NAME, SEEING])
def test_the_catalog_names_what_vllm_fetches(name: str) -> None:
    engine, judge = engine_of(name), find_judge(name)
    assert engine["model"] == judge.origin
    assert engine["max_model_len"] <= judge.context_tokens


def test_the_one_that_sees_takes_pictures_beside_what_the_other_takes() -> None:
    blind, seeing = (
        [line for line in (REPOSITORY / name / "config.pbtxt").read_text().splitlines() if "#" not in line]
        for name in (NAME, SEEING)
    )
    seeing.remove('  { name: "image" data_type: TYPE_STRING dims: [ -1 ] optional: true },')
    assert seeing == [line.replace(NAME, SEEING) for line in blind]


def test_as_many_pictures_as_an_item_may_have_fit_beside_its_text() -> None:
    engine, pictures = engine_of(SEEING), ImageConfig().max_count
    assert engine["limit_mm_per_prompt"]["image"] == pictures
    picture_tokens = engine["mm_processor_kwargs"]["max_pixels"] / 28**2  # Qwen2.5-VL: a token for 28 x 28 pixels
    text_tokens = RemoteJudgeConfig("", SEEING).max_prompt_characters / 4
    assert pictures * picture_tokens + text_tokens <= engine["max_model_len"]


def engine_of(name: str) -> dict[str, Any]:
    engine: dict[str, Any] = json.loads((REPOSITORY / name / "1" / "model.json").read_text(encoding="utf-8"))
    return engine


@pytest.mark.parametrize("kubernetes", ["1.27", "1.37"])
def test_kubernetes_knows_every_field(manifests: list[dict[str, Any]], kubernetes: str) -> None:
    for part in manifests:
        kubernetes_validate.validate(part, kubernetes, strict=True)


def test_only_fronts_reach_it(manifests: list[dict[str, Any]], compose: dict[str, Any]) -> None:
    (rule,) = of_kind(manifests, "NetworkPolicy")["judge-vllm"]["spec"]["ingress"]
    (peer,) = rule["from"]
    assert peer["podSelector"]["matchLabels"] == {
        "app.kubernetes.io/name": "gradewire",  # Chart.yaml's name
        "app.kubernetes.io/component": "front",
    }
    assert "ports" not in compose["judge"]
