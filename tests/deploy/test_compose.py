"""deploy/compose.yaml, as the real Docker Compose resolves it; no engine is needed for that."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.conftest import DEPLOY, ROOT, docker_compose, run

from gradewire_server.settings import Settings

_SECRETS = {"REDIS_PASSWORD": "r3dis", "GRAFANA_PASSWORD": "gr4fana", "GRADEWIRE_AUTH_TOKENS": "t0ken"}


def _services(*files: str) -> dict[str, Any]:
    arguments = [part for file in files for part in ("-f", str(DEPLOY / file))]
    config = json.loads(run(docker_compose(), *arguments, "config", "--format", "json", **_SECRETS))
    services: dict[str, Any] = config["services"]
    return services


@pytest.fixture(scope="module", params=[("compose.yaml",), ("compose.yaml", "compose.gpu.yaml")], ids=["cpu", "gpu"])
def services(request: pytest.FixtureRequest) -> dict[str, Any]:
    return _services(*request.param)


# Grafana's is a file in the container, which Compose asks for only when it starts one.
@pytest.mark.parametrize("secret", ["REDIS_PASSWORD", "GRADEWIRE_AUTH_TOKENS"])
def test_it_refuses_to_start_without_a_secret(secret: str) -> None:
    others = {name: value for name, value in _SECRETS.items() if name != secret}
    with pytest.raises(AssertionError, match=secret):
        run(docker_compose(), "-f", str(DEPLOY / "compose.yaml"), "config", **others)


def test_it_starts_in_the_order_of_health(services: dict[str, Any]) -> None:
    started: list[str] = []
    waiting = dict(services)
    while waiting:
        ready = [name for name, service in waiting.items() if set(service.get("depends_on", ())) <= set(started)]
        assert ready, f"these wait for each other: {waiting.keys()}"
        started += ready
        for name in ready:
            del waiting[name]
    assert started.index("models") < started.index("triton") < started.index("gradewire") < started.index("prometheus")
    for service in services.values():
        for name, dependency in service.get("depends_on", {}).items():
            ends = name == "models"
            assert dependency["condition"] == ("service_completed_successfully" if ends else "service_healthy")
            # gradewire's check is part of its image.
            assert ends or name == "gradewire" or services[name]["healthcheck"]["test"]


def test_nothing_is_published_beyond_this_machine_and_stores_not_at_all(services: dict[str, Any]) -> None:
    for name, service in services.items():
        ports = service.get("ports", [])
        assert all(port["host_ip"] == "127.0.0.1" for port in ports)
        assert not ports or name in {"gradewire", "prometheus", "grafana"}


def test_every_container_is_held_tight(services: dict[str, Any]) -> None:
    for service in services.values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["deploy"]["resources"]["limits"].keys() >= {"cpus", "memory"}
        assert re.fullmatch(r"[\w./-]+:v?\d[\w.-]*", service["image"]), "an image without a full version"


def test_secrets_reach_those_who_need_them_and_nobody_else(services: dict[str, Any]) -> None:
    for name, service in services.items():
        text = json.dumps(service)
        assert ("r3dis" in text) == (name == "gradewire")
        assert ("t0ken" in text) == (name == "gradewire")
        assert "gr4fana" not in text


def test_the_server_takes_its_settings(services: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    service = services["gradewire"]
    names = {f"GRADEWIRE_{name.upper()}" for name in Settings.model_fields}
    for name, value in service["environment"].items():
        assert name in names
        monkeypatch.setenv(name, value)
    settings = Settings.load()
    assert settings.triton_url == "triton:8001"
    assert int(service["stop_grace_period"].removesuffix("s")) > settings.drain_s + settings.grace_s


def test_what_is_mounted_is_there(services: dict[str, Any]) -> None:
    for service in services.values():
        for volume in service.get("volumes", []):
            if volume["type"] == "bind":
                assert Path(volume["source"]).exists()
                assert volume["read_only"]


def test_the_servers_models_are_those_that_triton_loads(services: dict[str, Any]) -> None:
    loaded = {
        part.removeprefix("--load-model=") for part in services["triton"]["command"] if part.startswith("--load-model=")
    }
    default = services["gradewire"]["environment"].get("GRADEWIRE_DEFAULT_MODEL", "all-MiniLM-L6-v2")
    assert loaded == {default}


def test_the_example_of_secrets_names_all_of_them() -> None:
    lines = (DEPLOY / "env.example").read_text().splitlines()
    assert {line.partition("=")[0] for line in lines if "=" in line and not line.startswith("#")} == _SECRETS.keys()
    assert ".env" in (DEPLOY / ".gitignore").read_text().split()
    assert (ROOT / ".dockerignore").read_text().startswith("#")
