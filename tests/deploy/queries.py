"""Every PromQL expression of deploy/, and the series that a scrape offers."""

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import yaml
from tests.deploy.conftest import DEPLOY

_SERIES = re.compile(r"\b(?:gradewire|nv|process)_\w+\b")
_OURS = re.compile(r"gradewire_engine_queue_mean_seconds")  # the adapter's name for what it computes


def dashboard() -> dict[str, Any]:
    """Grafana's dashboard."""
    content: dict[str, Any] = json.loads((DEPLOY / "grafana" / "gradewire.json").read_text())
    return content


def dashboard_queries() -> Iterator[tuple[str, str]]:
    """(panel, expression), with Grafana's variables as it would fill them in."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")


def alert_queries() -> Iterator[tuple[str, str]]:
    """(alert, expression)."""
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def adapter_queries() -> Iterator[tuple[str, str]]:
    """(metric, expression) of the autoscaler's metric, with the adapter's templates as it would fill them in."""
    for rule in yaml.safe_load((DEPLOY / "helm" / "prometheus-adapter.yaml").read_text())["rules"]["custom"]:
        query = (
            rule["metricsQuery"].replace("<<.GroupBy>>", "pod").replace("<<.LabelMatchers>>", 'namespace="n",pod=~".*"')
        )
        yield rule["name"]["as"], query
        yield rule["name"]["as"], rule["seriesQuery"].replace('{namespace!="",pod!=""}', "")


def all_queries() -> dict[str, str]:
    """Every expression, by a name for people."""
    found = chain(dashboard_queries(), alert_queries(), adapter_queries())
    return {f"{number} {name}": query for number, (name, query) in enumerate(found)}


def series_of(query: str) -> set[str]:
    """Names of the series that an expression reads."""
    return set(_SERIES.findall(query)) - set(_OURS.findall(query))


OF_SEVERAL_PROCESSES = {"gradewire_process_restarts_total"}
"""Series that their supervisor alone has: see tests/e2e/server/test_processes.py."""


def offered_series(scrape: str) -> set[str]:
    """Names of the series that a page of metrics announces, those without a value yet included."""
    families = re.findall(r"^# TYPE (\w+) (\w+)$", scrape, re.MULTILINE)
    parts = ("_bucket", "_sum", "_count")
    return {name + part for name, kind in families for part in (parts if kind == "histogram" else ("",))}
