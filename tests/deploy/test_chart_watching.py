"""What the Helm chart tells autoscaler, Prometheus operator and Grafana."""

from collections.abc import Callable
from pathlib import Path

import yaml
from tests.deploy.conftest import DEPLOY
from tests.deploy.queries import adapter_queries
from tests.deploy.rendering import CHART, MONITORED, HelmChart, of_kind, render


def test_the_autoscaler_follows_the_queue_by_a_name_that_the_adapter_makes(chart: HelmChart) -> None:
    scaler = of_kind(render(chart, {}), "HorizontalPodAutoscaler")["demo-gradewire"]
    assert scaler["spec"]["scaleTargetRef"]["name"] in of_kind(render(chart, {}), "Deployment")
    rules = yaml.safe_load((CHART.parent / "prometheus-adapter.yaml").read_text())["rules"]["custom"]
    assert scaler["spec"]["metrics"][0]["pods"]["metric"]["name"] in {rule["name"]["as"] for rule in rules}
    assert [metric["type"] for metric in scaler["spec"]["metrics"]] == ["Pods", "Resource"]
    by_cpu = of_kind(render(chart, {"autoscaling": {"metric": "cpu"}}), "HorizontalPodAutoscaler")["demo-gradewire"]
    assert [metric["type"] for metric in by_cpu["spec"]["metrics"]] == ["Resource"]
    front = of_kind(render(chart, {}), "Deployment")["demo-gradewire"]
    assert "replicas" not in front["spec"], "an upgrade would undo what the autoscaler has done"


def test_the_autoscalers_metric_is_the_mean_wait_and_zero_while_nobody_waits(
    promtool: Callable[..., str], tmp_path: Path
) -> None:
    query = next(query for _, query in adapter_queries())
    name = "gradewire_engine_queue_seconds"
    series = [
        {"series": f'{name}_{part}{{namespace="n", pod="{pod}", model="m"}}', "values": values}
        for pod, part, values in (
            *(("busy", "sum", "0+30x10"), ("busy", "count", "0+120x10")),
            *(("idle", "sum", "7x10"), ("idle", "count", "9x10")),
        )
    ]
    samples = [{"labels": '{pod="busy"}', "value": 0.25}, {"labels": '{pod="idle"}', "value": 0}]
    case = {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [{"expr": query, "eval_time": "9m", "exp_samples": samples}],
    }
    page = tmp_path / "adapter_test.yml"
    page.write_text(yaml.safe_dump({"rule_files": [], "tests": [case]}))
    assert "SUCCESS" in promtool("test", "rules", str(page))


def test_a_packaged_chart_is_whole(tmp_path: Path, chart: HelmChart) -> None:
    packed = render(chart.packaged(tmp_path), MONITORED)
    assert [part["kind"] for part in packed] == [part["kind"] for part in render(chart, MONITORED)]
    alerts = of_kind(packed, "PrometheusRule")["demo-gradewire"]["spec"]
    assert alerts == yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())


def test_monitoring_carries_the_very_alerts_and_dashboard_of_this_checkout(chart: HelmChart) -> None:
    manifests = render(chart, MONITORED)
    rules = of_kind(manifests, "PrometheusRule")["demo-gradewire"]["spec"]
    assert rules == yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    page = of_kind(manifests, "ConfigMap")["demo-gradewire-dashboard"]["data"]["gradewire.json"]
    assert page == (DEPLOY / "grafana" / "gradewire.json").read_text()
    monitors = of_kind(manifests, "ServiceMonitor")
    jobs = {monitor["spec"]["endpoints"][0]["relabelings"][0]["replacement"] for monitor in monitors.values()}
    assert jobs == {"gradewire", "triton"}
    for monitor in monitors.values():
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        found = [
            part for part in of_kind(manifests, "Service").values() if wanted <= part["metadata"]["labels"].items()
        ]
        assert len(found) == 1
        assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in found[0]["spec"]["ports"]}
