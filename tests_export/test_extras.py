"""What the extras `export` and `train` promise: all that they name can be imported, and so can what needs them."""

import importlib
import re
from importlib.metadata import packages_distributions, requires

import pytest

PROMISED = {
    "export": ("gradewire_models.export.run", "gradewire_models.export.hub", "gradewire_models.export.trace"),
    "train": ("gradewire_train.run.command", "gradewire_train.encoder", "gradewire_train.adapter"),
}


@pytest.mark.parametrize("extra", PROMISED)
def test_what_an_extra_names_is_what_its_code_imports(extra: str) -> None:
    named = [line for line in requires("gradewire") or () if re.search(rf"extra == ['\"]{extra}['\"]", line)]
    distributions = {re.split(r"[\[<>=!~; ]", line)[0].lower().replace("_", "-") for line in named} - {"gradewire"}
    assert {"torch", "transformers"} <= distributions
    importable = {
        name.lower().replace("_", "-"): module for module, names in packages_distributions().items() for name in names
    }
    for distribution in distributions:
        importlib.import_module(importable[distribution])
    for module in PROMISED[extra]:
        importlib.import_module(module)
