"""The checked-in files that are made from proto/ are what proto/ says."""

import importlib
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gradewire_proto.descriptors import counts_over_request
from gradewire_proto.metric_parameters import PARAMETERS
from gradewire_proto.v1 import types_pb2

ROOT = Path(__file__).resolve().parents[2]
V1 = "proto/src/gradewire_proto/v1"


@pytest.fixture(scope="module")
def generate() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "proto")
        # protoc looks its mypy plugins up on PATH; they lie beside the interpreter.
        patch.setenv("PATH", f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}")
        yield importlib.import_module("generate")
        sys.modules.pop("generate")


def test_regenerating_changes_nothing(generate: Any) -> None:
    made = generate.generated(ROOT / "docs/reference/metrics.md")
    kept = {str(path.relative_to(ROOT)) for path in (ROOT / V1).glob("*_pb2*")}
    assert len(made) == 30
    assert kept <= set(made)
    assert {name: (ROOT / name).read_text("utf-8") for name in made} == made


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("BleuParameters", " BLEU.\n", r"BleuParameters: the comment must have a description and a line 'Range: …'"),
        ("BleuParameters.max_ngram", " Longest n-gram.\n", r"BleuParameters.max_ngram: .* a line 'Allowed: …'"),
        (
            "SmileParameters.preset",
            " Variant.\n Default: v9.\n",
            r"SmileParameters.preset: .* one of v1, fast, one_pass",
        ),
        ("BleuParts", "", "BleuParts: the comment must have a description"),
    ],
)
def test_a_comment_that_lacks_something_is_named(generate: Any, path: str, text: str, message: str) -> None:
    file = generate.types_proto(generate.run_protoc()[1])
    with pytest.raises(ValueError, match=message):
        generate.Types(file, dict(generate.comments_of(file)) | {f"gradewire.v1.{path}": text})


def test_cider_alone_counts_over_the_request_by_default() -> None:
    specs = {name: types_pb2.MetricSpec() for name in PARAMETERS}
    for name, spec in specs.items():
        getattr(spec, name).SetInParent()

    assert {name for name, spec in specs.items() if counts_over_request(spec)} == {"cider"}


def test_pip_installs_a_protobuf_that_the_generated_code_accepts() -> None:
    modules = sorted((ROOT / V1).glob("*_pb2.py"))
    made_with = {re.search(r"PUBLIC,\s+(\d+),\s+(\d+),\s+(\d+),", module.read_text("utf-8")) for module in modules}
    assert modules
    versions = {tuple(map(int, found.groups())) for found in made_with if found}
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    (floor,) = (each.partition(">=")[2] for each in dependencies if each.startswith("protobuf>="))
    assert versions == {tuple(map(int, floor.split(".")))}
