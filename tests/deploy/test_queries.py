"""Dashboards, alerts and autoscaling ask for metrics that the server really has (Triton's: tests/e2e/test_up.py)."""

import urllib.request
from collections.abc import Callable
from pathlib import Path

import yaml
from tests.deploy.queries import OF_SEVERAL_PROCESSES, all_queries, dashboard, offered_series, series_of
from tests.support.servers.server_process import ServerProcess


def test_prometheus_can_read_every_expression(promtool: Callable[..., str], tmp_path: Path) -> None:
    queries = all_queries()
    assert len(queries) > 50
    rules = [{"record": f"test:{number}", "expr": query} for number, query in enumerate(queries.values())]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
    assert "SUCCESS" in promtool("check", "rules", str(path))


def test_every_metric_of_ours_that_is_asked_for_is_exported(tmp_path: Path, minilm: Path) -> None:
    # Nobody listens there: a server in front of Triton exports all metrics from the start.
    settings = {
        "model_repository": minilm,
        "backend": "triton",
        "triton_url": "127.0.0.1:9",
        "redis_url": "redis://127.0.0.1:9",
    }
    with (
        ServerProcess(tmp_path, **settings) as server,
        urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/metrics") as page,
    ):
        offered = offered_series(page.read().decode()) | OF_SEVERAL_PROCESSES
    missing = {
        name: unknown
        for name, query in all_queries().items()
        if (
            unknown := {series for series in series_of(query) if not series.startswith("nv_")}
            - offered
            - OF_SEVERAL_PROCESSES
        )
    }
    assert not missing


def test_the_dashboard_is_laid_out_without_overlap_and_reads_one_data_source() -> None:
    taken: set[tuple[int, int]] = set()
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
