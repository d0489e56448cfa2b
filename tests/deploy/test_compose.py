"""deploy/compose.yaml, as the real Docker Compose resolves it; no engine is needed for that."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.conftest import DEPLOY, builds, docker_compose, flags_of, run

from gradewire_models.catalog.loading import grader_models, load_catalog
from gradewire_models.judges.catalog import default_judge
from gradewire_models.judges.repository import default_judge_repository
from gradewire_models.repository.serving import CPU_INSTANCES
from gradewire_server.domain.metric import preferred_grader
from gradewire_server.settings.server import Settings


def _config(*files: str) -> dict[str, Any]:
    arguments = [part for file in files for part in ("-f", str(DEPLOY / file))]
    config: dict[str, Any] = json.loads(run(docker_compose(), *arguments, "config", "--format", "json"))
    # Compose refuses any other kind for a read-only root, and only when it starts the container.
    assert all(secret.keys() == {"name", "file"} for secret in config["secrets"].values())
    return config


FILES = {
    "cpu": (),
    "gpu": ("compose.gpu.yaml",),
    "judge": ("compose.judge.yaml",),
    "embedded judge": ("compose.embedded-judge.yaml",),
}


@pytest.fixture(scope="module", params=[("compose.yaml", *files) for files in FILES.values()], ids=FILES)
def config(request: pytest.FixtureRequest) -> dict[str, Any]:
    return _config(*request.param)


@pytest.fixture
def services(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["services"]
    return found


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
            ends = name in {"models", "weights"}
            assert dependency["condition"] == ("service_completed_successfully" if ends else "service_healthy")
            # gradewire's check is part of its image.
            assert ends or name == "gradewire" or services[name]["healthcheck"]["test"]


def test_nothing_is_published_beyond_this_machine_and_stores_not_at_all(services: dict[str, Any]) -> None:
    for name, service in services.items():
        ports = service.get("ports", [])
        assert all(port["host_ip"] == "127.0.0.1" for port in ports)
        assert not ports or name in {"gradewire", "prometheus", "grafana"}


def test_triton_and_the_cache_live_on_a_network_without_a_way_out(config: dict[str, Any]) -> None:
    assert config["networks"]["backend"].get("internal") is True
    networks = {name: set(service["networks"]) for name, service in config["services"].items()}
    assert networks["triton"] == networks["valkey"] == {"backend"}
    assert networks["gradewire"] == {"backend", "edge"}


def test_the_cache_loses_no_synthetic_answers(services: dict[str, Any]) -> None:
    flags = flags_of(services["valkey"]["command"])
    assert flags["maxmemory-policy"] == "volatile-lru", "other policies make room with what never expires, too"
    assert flags["appendonly"] == "yes"
    assert flags["maxmemory"] == "1gb"
    assert "/data" in {volume["target"] for volume in services["valkey"]["volumes"]}


def test_gradewire_may_mend_models(services: dict[str, Any]) -> None:
    assert flags_of(services["triton"]["command"])["model-control-mode"] == "explicit", "others refuse load and unload"


def test_every_container_is_held_tight(services: dict[str, Any]) -> None:
    for service in services.values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["deploy"]["resources"]["limits"].keys() >= {"cpus", "memory"}
        assert re.fullmatch(r"[\w./-]+:v?\d[\w.-]*", service["image"]), "an image without a full version"


def test_secrets_are_mounted_where_they_are_needed_and_stand_in_no_variable(services: dict[str, Any]) -> None:
    found = {name: [secret["source"] for secret in service.get("secrets", [])] for name, service in services.items()}
    assert {name: secrets for name, secrets in found.items() if secrets} == {
        "gradewire": ["gradewire.toml"],
        "valkey": ["redis_password"],
        "grafana": ["grafana_password"],
    }
    for service in services.values():
        for secret in re.findall(r"/run/secrets/([\w.]+)", json.dumps(service)):
            assert secret in [each["source"] for each in service["secrets"]]


def test_secrets_are_made_once_fit_each_other_and_are_read_by_the_server(tmp_path: Path) -> None:
    script = ("sh", str(DEPLOY / "make-secrets.sh"), str(tmp_path / "secrets"))
    assert "made" in run(*script)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert made.keys() == {"gradewire.toml", "redis_password", "grafana_password"}
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in (tmp_path / "secrets").iterdir())
    settings = Settings.load(config=tmp_path / "secrets" / "gradewire.toml")
    assert settings.engine.cache.redis is not None
    assert settings.engine.cache.redis.url == f"redis://:{made['redis_password']}@valkey:6379"
    assert len(settings.listen.auth_tokens[0]) == 48
    assert "already there" in run(*script)
    assert {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()} == made
    assert "/deploy/secrets/" in (DEPLOY.parent / ".gitignore").read_text().split()


def test_the_server_takes_its_settings(
    services: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("sh", str(DEPLOY / "make-secrets.sh"), str(tmp_path))
    service = services["gradewire"]
    names = {f"GRADEWIRE_{name.upper()}" for name in Settings.load().given}
    for name, value in service["environment"].items():
        assert name in names
        monkeypatch.setenv(name, value.replace("/run/secrets", str(tmp_path)))
    settings = Settings.load()
    assert settings.engine.triton is not None
    assert settings.engine.triton.url == "triton:8001"
    assert (
        int(service["stop_grace_period"].removesuffix("s")) > settings.shutdown.max_drain_s + settings.shutdown.grace_s
    )


def test_what_is_mounted_is_there(services: dict[str, Any]) -> None:
    for service in services.values():
        for volume in service.get("volumes", []):
            if volume["type"] == "bind":
                assert Path(volume["source"]).exists()
                assert volume["read_only"]


def test_the_embedded_judge_is_built_where_the_server_looks_and_has_room() -> None:
    services = _config("compose.yaml", *FILES["embedded judge"])["services"]
    assert services["judges"]["command"] == ["models", "build", default_judge().name]
    places = [
        {volume["source"]: volume["target"] for volume in services[name]["volumes"]}["judges"]
        for name in ("judges", "gradewire")
    ]
    assert places == [str(default_judge_repository(Path("/models")))] * 2
    memory = {name: int(services[name]["deploy"]["resources"]["limits"]["memory"]) for name in ("judges", "gradewire")}
    assert min(memory.values()) >= 4.5 * 2**30  # 2.5 GiB of the worker beside the server's 2; 2.6 and a full /tmp


def test_the_servers_models_are_those_that_triton_loads(services: dict[str, Any]) -> None:
    loaded = {
        part.removeprefix("--load-model=") for part in services["triton"]["command"] if part.startswith("--load-model=")
    }
    default = services["gradewire"]["environment"].get("GRADEWIRE_DEFAULT_MODEL", "all-MiniLM-L6-v2")
    model = load_catalog()[default]
    fits = [dict(fit.parameters) for fit in model.calibrations]
    named = [fit["grader"] for fit in fits if "grader" in fit]
    grader = preferred_grader(named, grader_models()[0].name)
    assert loaded == {default, grader} - {""}
    assert services["models"]["command"][:3] == ["models", "build", default]
    assert builds(services["models"]["command"])


def test_copies_and_their_threads_fit_the_cores_that_triton_gets() -> None:
    services = _config("compose.yaml")["services"]
    threads = int(flags_of(services["models"]["command"])["threads"])
    assert CPU_INSTANCES * threads == services["triton"]["deploy"]["resources"]["limits"]["cpus"]
