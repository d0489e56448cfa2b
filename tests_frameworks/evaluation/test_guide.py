"""The examples of the guide run as they stand, each against its framework, and its table tells of these tests."""

import re
from importlib.metadata import version
from pathlib import Path

import mlflow
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guides/evaluation-frameworks.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
ROW = re.compile(r"^\| .* \| (?P<name>[a-z-]+) (?P<version>[0-9.]+) \| .* \| (?P<lines>\d+) \| `(?P<test>[^`]+)` \|$")
ROWS = [match.groupdict() for line in PAGE.splitlines() if (match := ROW.match(line))]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: re.findall(r"evaluation\.?(\w*) import", block)[0] or "own")
def test_an_example_runs(block: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")

    exec(compile(block, "evaluation-frameworks.md", "exec"), {"__name__": "example"})  # noqa: S102 - the page is ours

    shown = capsys.readouterr().out
    assert "print(" not in block or re.search(r"0\.\d{3}", shown), shown


def test_the_table_tells_versions_lines_and_tests_of_today() -> None:
    assert len(ROWS) == 10
    for row in ROWS:
        assert version(row["name"]) == row["version"]
        test = ROOT / row["test"]
        module = ROOT / "client/src/gradewire/integrations/evaluation" / test.name.removeprefix("test_")
        assert f"from gradewire.integrations.evaluation.{module.stem} import" in test.read_text(encoding="utf-8")
        assert len(module.read_text(encoding="utf-8").splitlines()) == int(row["lines"])
