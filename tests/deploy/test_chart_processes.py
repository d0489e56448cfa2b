"""How many server processes a pod has, by what it asks for."""

from typing import Any

import helm_python
import pytest
from tests.deploy.rendering import HelmChart, of_kind, render


def _processes(chart: HelmChart, values: dict[str, Any]) -> list[str]:
    page = of_kind(render(chart, values), "ConfigMap")["demo-gradewire"]["data"]["gradewire.toml"]
    return [line for line in page.splitlines() if line.startswith("processes")]


@pytest.mark.parametrize(
    ("requests", "limits", "count"),
    [
        ({"cpu": "1", "memory": "1Gi"}, {"memory": "2Gi"}, 1),
        ({"cpu": "4", "memory": "2Gi"}, {"memory": "3Gi"}, 2),
        ({"cpu": 4, "memory": "2Gi"}, {"memory": "2047Mi"}, 1),
        ({"cpu": "500m", "memory": "1Gi"}, {"cpu": "6", "memory": "8Gi"}, 3),
        ({"cpu": "7900m", "memory": "64Gi"}, {"memory": "64Gi"}, 3),
        ({"cpu": "2.5", "memory": "64G"}, {}, 1),
        ({"cpu": "96"}, {"memory": "64000000Ki"}, 8),
    ],
)
def test_one_for_every_two_cores_and_gib(
    chart: HelmChart, requests: dict[str, Any], limits: dict[str, Any], count: int
) -> None:
    values = {"resources": {"requests": requests, "limits": limits}}
    assert _processes(chart, values) == [f"processes = {count}"]


def test_what_an_embedded_judge_takes_is_left_to_it(chart: HelmChart) -> None:
    values: dict[str, Any] = {
        "resources": {"requests": {"cpu": "5", "memory": "5Gi"}, "limits": {"memory": "5Gi"}},
        "judge": {"existingClaim": "judges"},
    }
    assert _processes(chart, values) == ["processes = 2"]
    values["resources"]["limits"]["memory"] = "4Gi"
    assert _processes(chart, values) == ["processes = 1"]
    assert _processes(chart, values | {"settings": {"judge_backend": "none"}}) == ["processes = 2"]
    assert _processes(chart, {"judge": {"existingClaim": "judges"}}) == ["processes = 1"], "never none"


def test_a_number_that_is_given_holds(chart: HelmChart) -> None:
    assert _processes(chart, {"settings": {"processes": 3}}) == ["processes = 3"]
    assert _processes(chart, {"settings": {"processes": 0}}) == ["processes = 1"]


def test_a_quantity_that_cannot_be_read_is_named(chart: HelmChart) -> None:
    with pytest.raises(helm_python.HelmRenderError, match="resources: cannot read the quantity 4cores"):
        _processes(chart, {"resources": {"requests": {"cpu": "4cores", "memory": "1Gi"}}})


def test_sockets_between_processes_have_a_place_to_be_written_to(chart: HelmChart) -> None:
    pod = of_kind(render(chart, {}), "Deployment")["demo-gradewire"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "tmp"]
    assert mount["mountPath"] == "/tmp"  # noqa: S108 - where the server makes them
    assert not mount.get("readOnly", False)
    assert [volume for volume in pod["volumes"] if volume["name"] == "tmp" and "emptyDir" in volume]
