import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradewire_models.cli.group import models


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(models, ["export", *map(str, arguments)])


def test_without_the_extra_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("gradewire_models.export.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    result = run(tmp_path, "--model-repository", tmp_path / "repository")
    assert result.exit_code == 2
    assert "pip install 'gradewire[export]'" in result.output
    assert "torch" in result.output
    assert not (tmp_path / "repository").exists()


def test_code_that_comes_with_a_model_cannot_be_asked_for() -> None:
    assert "trust" not in run("--help-all").output
    assert run("people/model", "--trust-remote-code").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "HUB_ID|PATH"),
        (("x", "--pooling", "max"), "'mean', 'cls', 'last', 'pooler'"),
        (("x", "--max-tokens", "0"), "x>=1"),
        (("x", "--token-layer", "0"), "x>=1"),
    ],
)
def test_usage_errors_name_the_choices(arguments: tuple[str, ...], says: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert says in result.output
