"""What the extras `export` and `train` promise: all that they name can be imported, and so can what needs them."""

import importlib
import re
from importlib.metadata import packages_distributions, requires

import pytest

PROMISED = {
    "export": ("gradewire_models.export.run", "gradewire_models.export.folder", "gradewire_models.export.exporter"),
    "train": ("gradewire_train.run.command", "gradewire_train.encoder", "gradewire_train.encoder"),
}


def named_by(extra: str) -> set[str]:
    """The distributions that an extra of gradewire names, and those that gradewire-train names where it does."""
    lines = [line for line in requires("gradewire") or () if re.search(rf"extra == ['\"]{extra}['\"]", line)]
    if any(line.startswith("gradewire-train") for line in lines):
        lines += requires("gradewire-train") or ()
    return {re.split(r"[\[<>=!~; ]", line)[0].lower().replace("_", "-") for line in lines} - {"gradewire"}


@pytest.mark.parametrize("extra", PROMISED)
def test_what_an_extra_names_is_what_its_code_imports(extra: str) -> None:
    distributions = named_by(extra)
    assert {"torch", "transformers"} <= distributions
    assert ("gradewire-train" in distributions) is (extra == "train")
    # An editable install has no files of its own to find the module by.
    importable = {"gradewire-train": "gradewire_train"} | {
        name.lower().replace("_", "-"): module for module, names in packages_distributions().items() for name in names
    }
    for distribution in distributions:
        importlib.import_module(importable[distribution])
    for module in PROMISED[extra]:
        importlib.import_module(module)
