"""The Helm chart, rendered by Helm's own library and checked against Kubernetes' schemas. No cluster has seen it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml
from tests.deploy.conftest import DEPLOY, ROOT

from gradewire_server.settings import Settings

_CHART = DEPLOY / "helm" / "gradewire"
_MONITORED = {"monitoring": {"serviceMonitor": True, "prometheusRule": True, "dashboard": True}}
_CASES: dict[str, dict[str, Any]] = {
    "default": {},
    "gpu": {
        "triton": {"gpus": 1},
        "models": {"names": ["a", "b"], "buildArguments": ["--target", "gpu"]},
        "tls": {"existingSecret": "tls", "clientCa": True},
        "auth": {"existingSecret": "tokens"},
        "networkPolicy": {"callers": [{"namespaceSelector": {}}], "monitoring": [{"podSelector": {}}]},
        "extraEnv": [{"name": "GRADEWIRE_NAMESPACE", "value": "x"}],
        **_MONITORED,
    },
    "external": {
        "triton": {"mode": "external", "url": "triton.example:8001", "tokenSecret": "proxy"},
        "redis": {"mode": "external", "existingSecret": "redis"},
        "models": {"mode": "claim", "existingClaim": "models"},
        "autoscaling": {"metric": "cpu"},
        "settings": {"triton_tls": True, "memory_max_bytes": "1GiB", "redis_cluster": True, "drain_s": 7.5},
        **_MONITORED,
    },
    "alone": {
        "triton": {"mode": "none"},
        "redis": {"mode": "none"},
        "autoscaling": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
        "networkPolicy": {"enabled": False},
    },
}
# Definitions of the Prometheus operator, which Kubernetes has no schema for.
_FOREIGN = {"ServiceMonitor", "PrometheusRule"}
Manifests = list[dict[str, Any]]


@pytest.fixture(scope="module")
def chart() -> Iterator[helm_python.Chart]:
    with helm_python.Chart.load(_CHART) as loaded:
        yield loaded


@pytest.fixture(scope="module", params=_CASES)
def case(request: pytest.FixtureRequest, chart: helm_python.Chart) -> tuple[str, Manifests]:
    return request.param, _render(chart, _CASES[request.param])


def _render(chart: helm_python.Chart, values: dict[str, Any]) -> Manifests:
    pages = chart.render(values, name="demo", namespace="prod")
    return [part for path, page in pages.items() if path.endswith(".yaml") for part in yaml.safe_load_all(page) if part]


def _of_kind(manifests: Manifests, kind: str) -> dict[str, dict[str, Any]]:
    return {part["metadata"]["name"]: part for part in manifests if part["kind"] == kind}


def _pods(manifests: Manifests) -> list[dict[str, Any]]:
    return [part["spec"]["template"] for part in manifests if part["kind"] in {"Deployment", "StatefulSet"}]


def test_helm_finds_nothing_to_complain_about() -> None:
    report = helm_python.lint(_CHART, strict=True)
    assert not report["errors"]
    assert [message["error"] for message in report["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("kubernetes", ["1.27", "1.37"])
def test_kubernetes_knows_every_field(case: tuple[str, Manifests], kubernetes: str) -> None:
    _, manifests = case
    for part in manifests:
        if part["kind"] not in _FOREIGN:
            kubernetes_validate.validate(part, kubernetes, strict=True)


def test_the_server_takes_the_settings_that_it_writes(
    case: tuple[str, Manifests], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, manifests = case
    page = tmp_path / "gradewire.toml"
    page.write_text(_of_kind(manifests, "ConfigMap")["demo-gradewire"]["data"]["gradewire.toml"])
    pod = _of_kind(manifests, "Deployment")["demo-gradewire"]["spec"]["template"]["spec"]
    known = {f"GRADEWIRE_{name.upper()}" for name in Settings.model_fields} | {"REDIS_PASSWORD"}
    for variable in pod["containers"][0]["env"]:
        assert variable["name"] in known
        monkeypatch.setenv(variable["name"], variable.get("value", "redis://secret"))
    settings = Settings.load(config=page)
    assert settings.backend == ("embedded" if name == "alone" else "triton")
    assert pod["terminationGracePeriodSeconds"] > settings.drain_s + settings.grace_s
    assert (settings.redis_url is None) == (name == "alone")


def test_every_setting_can_be_given_except_those_that_the_chart_sets(chart: helm_python.Chart) -> None:
    set_by_chart = {
        *("config", "host", "port", "http", "http_port", "tls_cert", "tls_key", "tls_client_ca", "auth_tokens"),
        *("redis_url", "model_repository", "default_model", "preload", "disk_directory"),
        *("backend", "triton_url", "triton_token"),
    }
    schema = chart.schema
    assert schema is not None
    assert schema["properties"]["settings"]["properties"].keys() == Settings.model_fields.keys() - set_by_chart


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"settings": {"max_batch_tokens": "many"}}, "max_batch_tokens"),
        ({"settings": {"no_such_setting": 1}}, "no_such_setting"),
        ({"settings": {"redis_url": "redis://:password@x"}}, "redis_url"),
        ({"triton": {"gpu": 1}}, "gpu"),
        ({"models": {"names": []}}, "names"),
        ({"redis": {"mode": "cluster"}}, "mode"),
    ],
)
def test_a_wrong_value_is_refused_by_name(chart: helm_python.Chart, values: dict[str, Any], named: str) -> None:
    with pytest.raises(helm_python.HelmValuesError, match=named):
        chart.validate_schema(values)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"triton": {"mode": "external"}}, "triton.url"),
        ({"redis": {"mode": "external"}}, "redis.existingSecret"),
        ({"models": {"mode": "claim"}}, "models.existingClaim"),
    ],
)
def test_what_is_left_out_is_named(chart: helm_python.Chart, values: dict[str, Any], named: str) -> None:
    with pytest.raises(helm_python.HelmRenderError, match=named):
        chart.render(values)


def test_every_container_is_held_tight(case: tuple[str, Manifests]) -> None:
    _, manifests = case
    for pod in _pods(manifests):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
            assert not container["image"].endswith((":", ":latest"))


def test_names_inside_the_release_meet(case: tuple[str, Manifests]) -> None:
    _, manifests = case
    pods = _pods(manifests)
    accounts = _of_kind(manifests, "ServiceAccount")
    own = {(part["kind"], part["metadata"]["name"]) for part in manifests}
    for pod in pods:
        spec = pod["spec"]
        assert spec["serviceAccountName"] in accounts
        volumes = {volume["name"]: volume for volume in spec.get("volumes", [])} | {"data": {}}
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes.keys()
            ports = {port["name"] for port in container.get("ports", [])}
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                check = container.get(probe, {})
                target = check.get("httpGet", check.get("tcpSocket", {}))
                assert target.get("port", next(iter(ports), None)) in ports | {None}
        for volume in volumes.values():
            assert "configMap" not in volume or ("ConfigMap", volume["configMap"]["name"]) in own
    for part in manifests:
        selector = {
            "Service": lambda spec: spec["selector"],
            "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "Deployment": lambda spec: spec["selector"]["matchLabels"],
        }.get(part["kind"])
        if selector is not None:
            wanted = selector(part["spec"]).items()
            matching = [pod for pod in pods if wanted <= pod["metadata"]["labels"].items()]
            assert len(matching) == 1, (
                f"{part['kind']} {part['metadata']['name']} selects {len(matching)} kinds of pods"
            )
            names = {port["name"] for each in matching[0]["spec"]["containers"] for port in each["ports"]}
            asked = [port["targetPort"] for port in part["spec"].get("ports", [])]
            asked += [port["port"] for rule in part["spec"].get("ingress", []) for port in rule["ports"]]
            assert set(asked) <= names


def test_servers_are_found_where_the_front_looks_for_them(chart: helm_python.Chart) -> None:
    manifests = _render(chart, {})
    services = _of_kind(manifests, "Service")
    page = _of_kind(manifests, "ConfigMap")["demo-gradewire"]["data"]["gradewire.toml"]
    assert 'triton_url = "demo-gradewire-triton:8001"' in page
    assert 8001 in {port["port"] for port in services["demo-gradewire-triton"]["spec"]["ports"]}
    env = _of_kind(manifests, "Deployment")["demo-gradewire"]["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "GRADEWIRE_REDIS_URL", "value": "redis://:$(REDIS_PASSWORD)@demo-gradewire-redis:6379"} in env
    assert services["demo-gradewire-redis"]["spec"]["ports"][0]["port"] == 6379
    assert services["demo-gradewire"]["spec"]["clusterIP"] == "None", "round robin needs all addresses"


def test_pods_take_new_settings(chart: helm_python.Chart) -> None:
    def checksum(values: dict[str, Any]) -> str:
        template = _of_kind(_render(chart, values), "Deployment")["demo-gradewire"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/settings"])

    assert checksum({}) == checksum({"replicas": 5})
    assert checksum({}) != checksum({"settings": {"log_level": "debug"}})


def test_the_autoscaler_follows_the_queue_by_a_name_that_the_adapter_makes(chart: helm_python.Chart) -> None:
    scaler = _of_kind(_render(chart, {}), "HorizontalPodAutoscaler")["demo-gradewire"]
    assert scaler["spec"]["scaleTargetRef"]["name"] in _of_kind(_render(chart, {}), "Deployment")
    rules = yaml.safe_load((_CHART.parent / "prometheus-adapter.yaml").read_text())["rules"]["custom"]
    assert scaler["spec"]["metrics"][0]["pods"]["metric"]["name"] in {rule["name"]["as"] for rule in rules}
    by_cpu = _of_kind(_render(chart, {"autoscaling": {"metric": "cpu"}}), "HorizontalPodAutoscaler")["demo-gradewire"]
    assert [metric["type"] for metric in by_cpu["spec"]["metrics"]] == ["Resource"]
    front = _of_kind(_render(chart, {}), "Deployment")["demo-gradewire"]
    assert "replicas" not in front["spec"], "an upgrade would undo what the autoscaler has done"


def test_monitoring_carries_the_very_alerts_and_dashboard_of_this_checkout(chart: helm_python.Chart) -> None:
    manifests = _render(chart, _MONITORED)
    rules = _of_kind(manifests, "PrometheusRule")["demo-gradewire"]["spec"]
    assert rules == yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    page = _of_kind(manifests, "ConfigMap")["demo-gradewire-dashboard"]["data"]["gradewire.json"]
    assert page == (DEPLOY / "grafana" / "gradewire.json").read_text()
    monitors = _of_kind(manifests, "ServiceMonitor")
    jobs = {monitor["spec"]["endpoints"][0]["relabelings"][0]["replacement"] for monitor in monitors.values()}
    assert jobs == {"gradewire", "triton"}
    for monitor in monitors.values():
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        found = [
            part for part in _of_kind(manifests, "Service").values() if wanted <= part["metadata"]["labels"].items()
        ]
        assert len(found) == 1
        assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in found[0]["spec"]["ports"]}


def test_the_version_is_that_of_the_distribution(chart: helm_python.Chart) -> None:
    assert f'version = "{chart.metadata["appVersion"]}"' in (ROOT / "pyproject.toml").read_text()
    images = (DEPLOY / "compose.yaml").read_text()
    assert f"image: gradewire:{chart.metadata['appVersion']}" in images


def test_values_document_only_what_the_schema_knows(chart: helm_python.Chart) -> None:
    chart.validate_schema(None)
    schema = chart.schema
    assert schema is not None
    assert schema["properties"].keys() - {"global"} == yaml.safe_load((_CHART / "values.yaml").read_text()).keys()
