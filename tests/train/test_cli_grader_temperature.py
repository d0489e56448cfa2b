"""What --temperature takes: a wrong one is told before anything is trained, and without PyTorch."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gradewire_train.cli import grader


@pytest.mark.parametrize("given", ["nan", "inf", "0", "-1"])
def test_what_is_no_number_above_0_is_told_at_once(tmp_path: Path, given: str) -> None:
    result = CliRunner().invoke(grader, ["--out", str(tmp_path / "out"), "--temperature", given])
    assert result.exit_code == 2
    assert "--temperature" in result.output
    assert not (tmp_path / "out").exists()
