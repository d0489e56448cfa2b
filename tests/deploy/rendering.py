"""The chart as Helm's own library renders it."""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import helm_python
import yaml

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "gradewire"
MONITORED = {"monitoring": {"serviceMonitor": True, "prometheusRule": True, "dashboard": True}}
CASES: dict[str, dict[str, Any]] = {
    "default": {},
    "gpu": {
        "triton": {"gpus": 1},
        "models": {
            "names": ["all-MiniLM-L6-v2-fp16-cuda", "grader-mini-fp16-cuda"],
            "buildArguments": ["--instances", "2"],
        },
        "tls": {"existingSecret": "tls", "clientCa": True, "http": True},
        "auth": {"existingSecret": "tokens"},
        "httpApi": {"enabled": True, "names": ["grade.example"]},
        "networkPolicy": {"callers": [{"namespaceSelector": {}}], "monitoring": [{"podSelector": {}}]},
        "extraEnv": [{"name": "GRADEWIRE_NAMESPACE", "value": "x"}],
        **MONITORED,
    },
    "external": {
        "triton": {"mode": "external", "url": "grpcs://triton.example:8001", "tokenSecret": "proxy"},
        "redis": {"mode": "external", "existingSecret": "redis", "macSecret": "mac"},
        "models": {"mode": "claim", "existingClaim": "models"},
        "judge": {"existingClaim": "judges", "preload": True},
        "autoscaling": {"metric": "cpu"},
        "settings": {"memory_max_bytes": "1GiB", "redis_cluster": True, "drain_s": 7.5},
        **MONITORED,
    },
    "alone": {
        "triton": {"mode": "none"},
        "redis": {"mode": "none"},
        "autoscaling": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
        "networkPolicy": {"enabled": False},
    },
    "small": yaml.safe_load((CHART / "values-small.yaml").read_text(encoding="utf-8")),
}
ALONE = {"alone", "small"}
"""Cases without Triton and Redis."""
# Definitions of the Prometheus operator, which Kubernetes has no schema for.
FOREIGN = {"ServiceMonitor", "PrometheusRule"}
Manifests = list[dict[str, Any]]


def on_chart(path: Path, attribute: str, *arguments: Any, **options: Any) -> Any:
    """Return what an attribute of a chart says, or what a method of it returns."""
    with helm_python.Chart.load(path) as chart:
        said = getattr(chart, attribute)
        return said(*arguments, **options) if callable(said) else said


class HelmChart:
    """A chart that Helm's library reads in a process of its own.

    The library is written in Go, whose runtime aborts where a process of many threads has signal handlers of Python.
    """

    def __init__(self, pool: ProcessPoolExecutor, path: Path = CHART) -> None:
        self._pool = pool
        self._path = path

    def packaged(self, folder: Path) -> "HelmChart":
        """Return the chart after it was packed into an archive in the folder."""
        return HelmChart(self._pool, self._pool.submit(helm_python.package, self._path, destination=folder).result(60))

    def lint(self) -> Any:
        """Return Helm's strict report."""
        return self._pool.submit(helm_python.lint, self._path, strict=True).result(60)

    def ask(self, attribute: str, *arguments: Any, **options: Any) -> Any:
        """Return what an attribute or a method of `helm_python.Chart` says."""
        return self._pool.submit(on_chart, self._path, attribute, *arguments, **options).result(60)


def render(chart: HelmChart, values: dict[str, Any]) -> Manifests:
    """Every object of a release named demo."""
    pages = chart.ask("render", values, name="demo", namespace="prod")
    return [part for path, page in pages.items() if path.endswith(".yaml") for part in yaml.safe_load_all(page) if part]


def of_kind(manifests: Manifests, kind: str) -> dict[str, dict[str, Any]]:
    """Objects of one kind by name."""
    return {part["metadata"]["name"]: part for part in manifests if part["kind"] == kind}


def pods_of(manifests: Manifests) -> list[dict[str, Any]]:
    """Templates of all pods."""
    return [part["spec"]["template"] for part in manifests if part["kind"] in {"Deployment", "StatefulSet"}]
