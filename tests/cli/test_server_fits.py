"""What is told of a built model's calibrations."""

import re
import shutil
from pathlib import Path

import pytest

from gradewire.errors import InvalidRequest
from gradewire_cli.server_fits import fitted_for

NAME = "all-MiniLM-L6-v2"


def test_the_catalogs_fit_is_told_and_where_a_build_is_too_old_for_it_how_to_get_it(
    minilm: Path, tmp_path: Path
) -> None:
    name, lines = fitted_for(minilm, NAME)
    assert name.startswith(f"{NAME}@")
    told = [line for line in lines if "correctness" in line]
    assert len(told) == 2  # without the grader and with it
    assert all("catalog" in line and "too old" not in line for line in told)

    shutil.copytree(minilm / NAME, tmp_path / NAME)
    config = tmp_path / NAME / "config.pbtxt"
    text, removed = re.subn(
        r'parameters \{\n  key: "gradewire\.calibration\.(?:calibrated|correctness)"\n.*?\n\}\n',
        "",
        config.read_text(),
        flags=re.DOTALL,
    )
    assert removed == 1
    config.write_text(text)
    _, lines = fitted_for(tmp_path, NAME)
    assert [line for line in lines if "correctness" in line] == [
        f"{metric}: this build is too old for the catalog's fit. Run: gradewire models build {NAME}"
        for metric in ("correctness", "correctness?grader=grader-mini")
    ]


def test_a_model_that_is_not_built_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=NAME):
        fitted_for(tmp_path, NAME)
