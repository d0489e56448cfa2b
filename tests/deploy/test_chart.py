"""The Helm chart, rendered by Helm's own library and checked against Kubernetes' schemas. No cluster has seen it."""

import re
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml
from tests.deploy.conftest import DEPLOY, ROOT, builds, flags_of
from tests.deploy.rendering import ALONE, CASES, CHART, FOREIGN, HelmChart, Manifests, of_kind, pods_of, render

from gradewire_models.repository.serving import CPU_INSTANCES
from gradewire_server.settings.server import Settings


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, chart: HelmChart) -> tuple[str, Manifests]:
    return request.param, render(chart, CASES[request.param])


def test_helm_finds_nothing_to_complain_about(chart: HelmChart) -> None:
    report = chart.lint()
    assert not report["errors"]
    assert [message["error"] for message in report["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("kubernetes", ["1.27", "1.37"])
def test_kubernetes_knows_every_field(case: tuple[str, Manifests], kubernetes: str) -> None:
    _, manifests = case
    for part in manifests:
        if part["kind"] not in FOREIGN:
            kubernetes_validate.validate(part, kubernetes, strict=True)


def test_the_server_takes_the_settings_that_it_writes(
    case: tuple[str, Manifests], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, manifests = case
    page = tmp_path / "gradewire.toml"
    page.write_text(of_kind(manifests, "ConfigMap")["demo-gradewire"]["data"]["gradewire.toml"])
    pod = of_kind(manifests, "Deployment")["demo-gradewire"]["spec"]["template"]["spec"]
    known = {f"GRADEWIRE_{name.upper()}" for name in Settings.load().given} | {"REDIS_PASSWORD"}
    for variable in pod["containers"][0]["env"]:
        assert variable["name"] in known
        monkeypatch.setenv(variable["name"], variable.get("value", "redis://secret-of-16-bytes"))
    settings = Settings.load(config=page)
    assert settings.backend == ("embedded" if name in ALONE else "triton")
    assert pod["terminationGracePeriodSeconds"] > settings.shutdown.max_drain_s + settings.shutdown.grace_s
    assert (settings.engine.cache.redis is None) == (name in ALONE)


def test_the_small_values_fit_one_small_node(chart: HelmChart) -> None:
    manifests = render(chart, CASES["small"])
    kinds = {part["kind"] for part in manifests}
    assert not kinds & {"StatefulSet", "HorizontalPodAutoscaler", "PodDisruptionBudget", "PersistentVolumeClaim"}
    (deployment,) = of_kind(manifests, "Deployment").values()
    assert deployment["spec"]["replicas"] == 1
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"] == {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "1536Mi"}}
    assert {each["resources"]["requests"]["memory"] for each in pod["initContainers"]} == {"1Gi"}


def test_the_documented_commands_name_files_that_are_there() -> None:
    page = (ROOT / "docs/operate/deployment.md").read_text(encoding="utf-8")
    named = re.findall(r"\bdeploy/[\w./-]+\w", page)
    assert {"deploy/helm/gradewire/values-small.yaml", "deploy/docker/Dockerfile", "deploy/compose.yaml"} <= {*named}
    assert [each for each in named if not (ROOT / each).exists() and each != "deploy/secrets"] == []


def test_every_setting_can_be_given_except_those_that_the_chart_sets(chart: HelmChart) -> None:
    set_by_chart = {
        *(
            "config",
            "host",
            "port",
            "http_port",
            "http_api_port",
            "http_api_host",
            "http_api_names",
            "tls_cert",
            "tls_key",
            "tls_client_ca",
            "auth_tokens",
        ),
        *("redis_url", "model_repository", "default_model", "preload", "disk_directory"),
        *("backend", "triton_url", "triton_token", "judge_token"),
        *("http_tls", "redis_mac_key"),  # tls.http, which its probes follow; redis.macSecret
    }
    schema = chart.ask("schema")
    assert schema is not None
    assert schema["properties"]["settings"]["properties"].keys() == Settings.load().given.keys() - set_by_chart


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"settings": {"max_connections": "many"}}, "max_connections"),
        ({"settings": {"no_such_setting": 1}}, "no_such_setting"),
        ({"settings": {"redis_url": "redis://:password@x"}}, "redis_url"),
        ({"triton": {"gpu": 1}}, "gpu"),
        ({"models": {"names": []}}, "names"),
        ({"redis": {"mode": "cluster"}}, "mode"),
    ],
)
def test_a_wrong_value_is_refused_by_name(chart: HelmChart, values: dict[str, Any], named: str) -> None:
    with pytest.raises(helm_python.HelmValuesError, match=named):
        chart.ask("validate_schema", values)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"triton": {"mode": "external"}}, "triton.url"),
        ({"redis": {"mode": "external"}}, "redis.existingSecret"),
        ({"tls": {"http": True}}, "tls.existingSecret"),
        ({"models": {"mode": "claim"}}, "models.existingClaim"),
        ({"triton": {"gpus": 1}}, r"triton\.gpus.*all-MiniLM-L6-v2 is for CPUs"),
        ({"models": {"names": ["a-fp16-cuda", "b"]}, "triton": {"gpus": 2}}, "b is for CPUs"),
        ({"models": {"names": ["all-MiniLM-L6-v2-fp16-tensorrt"]}}, r"v2-fp16-tensorrt needs a GPU.*triton\.gpus"),
    ],
)
def test_what_is_left_out_or_does_not_fit_is_named(chart: HelmChart, values: dict[str, Any], named: str) -> None:
    with pytest.raises(helm_python.HelmRenderError, match=named):
        chart.ask("render", values)


def test_every_container_is_held_tight(case: tuple[str, Manifests]) -> None:
    _, manifests = case
    for pod in pods_of(manifests):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
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
    pods = pods_of(manifests)
    accounts = of_kind(manifests, "ServiceAccount")
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


def test_built_judges_are_mounted_where_the_server_looks(chart: HelmChart, tmp_path: Path) -> None:
    manifests = render(chart, CASES["external"])
    page = tmp_path / "gradewire.toml"
    page.write_text(of_kind(manifests, "ConfigMap")["demo-gradewire"]["data"]["gradewire.toml"])
    pod = of_kind(manifests, "Deployment")["demo-gradewire"]["spec"]["template"]["spec"]
    mounts = {mount["name"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts["judges"]["readOnly"]
    judge = Settings.load(config=page).engine.judge
    assert judge.preload
    assert mounts["judges"]["mountPath"] == str(judge.embedded.repository)
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["judges"]["persistentVolumeClaim"] == {"claimName": "judges", "readOnly": True}


def test_servers_are_found_where_the_front_looks_for_them(chart: HelmChart) -> None:
    manifests = render(chart, {})
    services = of_kind(manifests, "Service")
    page = of_kind(manifests, "ConfigMap")["demo-gradewire"]["data"]["gradewire.toml"]
    assert 'triton_url = "demo-gradewire-triton:8001"' in page
    assert 8001 in {port["port"] for port in services["demo-gradewire-triton"]["spec"]["ports"]}
    env = of_kind(manifests, "Deployment")["demo-gradewire"]["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "GRADEWIRE_REDIS_URL", "value": "redis://:$(REDIS_PASSWORD)@demo-gradewire-redis:6379"} in env
    assert services["demo-gradewire-redis"]["spec"]["ports"][0]["port"] == 6379
    assert services["demo-gradewire"]["spec"]["clusterIP"] == "None", "round robin needs all addresses"


def test_the_http_api_has_a_port_and_a_service_only_where_it_is_asked_for(chart: HelmChart) -> None:
    without = render(chart, {})
    assert "http_api" not in of_kind(without, "ConfigMap")["demo-gradewire"]["data"]["gradewire.toml"]
    assert "demo-gradewire-http" not in of_kind(without, "Service")
    manifests = render(chart, {"httpApi": {"enabled": True, "names": ["grade.example"]}})
    page = of_kind(manifests, "ConfigMap")["demo-gradewire"]["data"]["gradewire.toml"]
    assert {'http_api_host = "0.0.0.0"', "http_api_port = 8080", 'http_api_names = ["grade.example"]'} <= {
        line.strip() for line in page.splitlines()
    }
    [port] = of_kind(manifests, "Service")["demo-gradewire-http"]["spec"]["ports"]
    assert (port["name"], port["port"], port["targetPort"]) == ("http", 8080, "http-api")
    [callers, *_] = of_kind(manifests, "NetworkPolicy")["demo-gradewire"]["spec"]["ingress"]
    assert {"port": "http-api"} in callers["ports"]


def test_the_cache_loses_no_synthetic_answers(chart: HelmChart) -> None:
    sets = of_kind(render(chart, {"redis": {"maxMemory": "7gb"}}), "StatefulSet")
    pod = sets["demo-gradewire-redis"]["spec"]
    [container] = pod["template"]["spec"]["containers"]
    flags = flags_of(container["command"])
    assert flags["maxmemory-policy"] == "volatile-lru", "other policies make room with what never expires, too"
    assert flags["appendonly"] == "yes"
    assert flags["maxmemory"] == "7gb"
    assert {"name": "data", "mountPath": "/data"} in container["volumeMounts"]
    assert [claim["metadata"]["name"] for claim in pod["volumeClaimTemplates"]] == ["data"]


def test_gradewire_may_mend_models(chart: HelmChart) -> None:
    pod = of_kind(render(chart, {}), "Deployment")["demo-gradewire-triton"]["spec"]["template"]["spec"]
    flags = flags_of(pod["containers"][0]["args"])
    assert flags["model-control-mode"] == "explicit", "others refuse load and unload"


def test_copies_and_their_threads_fit_the_cores_that_triton_asks_for(chart: HelmChart) -> None:
    pod = of_kind(render(chart, {}), "Deployment")["demo-gradewire-triton"]["spec"]["template"]["spec"]
    builder = pod["initContainers"][0]["args"]
    assert builds(builder)
    threads = int(flags_of(builder)["threads"])
    assert CPU_INSTANCES * threads == int(pod["containers"][0]["resources"]["requests"]["cpu"])


def test_the_key_of_redis_macs_comes_from_a_secret(chart: HelmChart) -> None:
    def key_of(**redis: str) -> Any:
        pod = of_kind(render(chart, {"redis": redis}), "Deployment")["demo-gradewire"]["spec"]["template"]["spec"]
        given = {each["name"]: each for each in pod["containers"][0]["env"]}
        return given.get("GRADEWIRE_REDIS_MAC_KEY", {}).get("valueFrom")

    assert key_of() is None
    assert key_of(macSecret="mac") == {"secretKeyRef": {"name": "mac", "key": "mac_key"}}
    both = {"mode": "external", "existingSecret": "redis", "macSecret": "redis", "macKey": "mac"}
    assert key_of(**both) == {"secretKeyRef": {"name": "redis", "key": "mac"}}
    assert key_of(mode="none", macSecret="mac") is None


def test_probes_and_prometheus_follow_the_http_side_to_tls(chart: HelmChart) -> None:
    def asked(values: dict[str, Any]) -> tuple[set[str], dict[str, Any], bool]:
        manifests = render(chart, {"monitoring": {"serviceMonitor": True, "tlsConfig": {"serverName": "x"}}, **values})
        pod = of_kind(manifests, "Deployment")["demo-gradewire"]["spec"]["template"]["spec"]["containers"][0]
        probes = [pod[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
        (endpoint,) = of_kind(manifests, "ServiceMonitor")["demo-gradewire-front"]["spec"]["endpoints"]
        page = of_kind(manifests, "ConfigMap")["demo-gradewire"]["data"]["gradewire.toml"]
        return {probe.get("scheme", "HTTP") for probe in probes}, endpoint, "http_tls = true" in page

    schemes, endpoint, told = asked({"tls": {"existingSecret": "tls", "http": True}})
    assert (schemes, endpoint["scheme"], endpoint["tlsConfig"], told) == ({"HTTPS"}, "https", {"serverName": "x"}, True)
    schemes, endpoint, told = asked({"tls": {"existingSecret": "tls"}})
    assert (schemes, endpoint.keys() & {"scheme", "tlsConfig"}, told) == ({"HTTP"}, set(), False)


def test_pods_take_new_settings(chart: HelmChart) -> None:
    def checksum(values: dict[str, Any]) -> str:
        template = of_kind(render(chart, values), "Deployment")["demo-gradewire"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/settings"])

    assert checksum({}) == checksum({"replicas": 5})
    assert checksum({}) != checksum({"settings": {"log_level": "debug"}})


def test_the_version_is_that_of_the_distribution(chart: HelmChart) -> None:
    version = chart.ask("metadata")["appVersion"]
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()
    images = (DEPLOY / "compose.yaml").read_text()
    assert f"image: gradewire:{chart.ask('metadata')['appVersion']}" in images


def test_values_document_only_what_the_schema_knows(chart: HelmChart) -> None:
    chart.ask("validate_schema", None)
    schema = chart.ask("schema")
    assert schema is not None
    assert schema["properties"].keys() - {"global"} == yaml.safe_load((CHART / "values.yaml").read_text()).keys()
