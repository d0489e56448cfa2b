"""Alert rules: valid, each proven to fire by a unit test of promtool's, each with a section in the runbook."""

import re
from collections.abc import Callable
from pathlib import Path

import yaml
from tests.deploy.conftest import DEPLOY, ROOT

_TESTS = Path(__file__).with_name("alerts_test.yml")
_RULES = DEPLOY / "prometheus" / "alerts.yml"


def _alerts() -> dict[str, dict[str, object]]:
    groups = yaml.safe_load(_RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_prometheus_takes_configuration_and_rules(promtool: Callable[..., str]) -> None:
    assert "SUCCESS" in promtool("check", "config", str(DEPLOY / "prometheus" / "prometheus.yml"))


def test_each_alert_fires_on_what_it_is_for_and_not_on_what_is_near(promtool: Callable[..., str]) -> None:
    assert "SUCCESS" in promtool("test", "rules", str(_TESTS))


def test_no_alert_is_left_untested() -> None:
    cases = [case for test in yaml.safe_load(_TESTS.read_text())["tests"] for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == _alerts().keys()


def test_each_alert_leads_to_its_section_of_the_runbook() -> None:
    page = (ROOT / "docs" / "operate" / "observe.md").read_text()
    sections = {re.sub(r"[^\w-]", "", title.lower()) for title in re.findall(r"^#+ (.+)$", page, re.MULTILINE)}
    for name, rule in _alerts().items():
        annotations = rule["annotations"]
        assert isinstance(annotations, dict)
        assert annotations["runbook"] == f"docs/operate/observe.md#{name.lower()}"
        assert name.lower() in sections
