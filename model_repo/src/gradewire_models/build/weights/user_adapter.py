"""A user's own adapter as a model, and an adapter's files brought into a build."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from gradewire_models.build.weights.adapter_config import AdapterConfig, read_adapter_config, read_json_object
from gradewire_models.build.weights.merge import MAX_ADAPTER_BYTES
from gradewire_models.catalog.adapters import (
    ADAPTER_CONFIG,
    ADAPTER_METADATA,
    ADAPTER_WEIGHTS,
    HEAD_WEIGHTS,
    AdapterSource,
    adapter_files,
)
from gradewire_models.catalog.entries import CatalogModel
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.catalog.reading import adapted_model
from gradewire_models.catalog.table import NAME
from gradewire_models.errors import BuildError, DigestMismatchError
from gradewire_models.repository.digest import file_sha256

_PICKLE = "adapter_model.bin"


def user_adapted(directory: Path, base: CatalogModel, name: str = "") -> CatalogModel:
    """Describes the model that `base` becomes with the adapter in `directory`.

    Beside PEFT's two files ``gradewire.json`` may say base, licence, max_tokens and text_form, as
    ``gradewire models train sfve`` writes it; without it texts are as long as the base's, and no licence is known. The
    text_form ``"grader"`` makes a grader of it, whose head lies beside them.

    Args:
        directory: Of the adapter.
        base: A model of the catalog.
        name: Of the model in the repository; empty for that of the directory.

    Raises:
        BuildError: The folder holds no adapter that can be merged into `base`, or the name cannot be used.
    """
    directory = directory.resolve()
    name = name or directory.name
    if not NAME.fullmatch(name):
        raise BuildError(f"{name!r} is no name for a model (letters, digits, '.', '_' and '-'): say --name")
    if name in load_catalog():
        raise BuildError(f"{name!r} is a model of the catalog, whose digest is fixed: choose another with --name")
    if base.base or base.adapter:
        own = base.base or (base.adapter.base if base.adapter else "")
        raise BuildError(f"{base.name} is made of {own}: name {own}, whose weights adapters belong to")
    _check_files(directory)
    config = read_adapter_config(directory / ADAPTER_CONFIG)
    _check_base(directory / ADAPTER_CONFIG, config, base)
    said = _Said(directory / ADAPTER_METADATA)
    if said.text("base", base.name) != base.name:
        raise BuildError(f"{said.path}: base is {said.text('base')!r}, not {base.name}: name that one")
    if said.text("base_sha256", base.files["model.safetensors"]) != base.files["model.safetensors"]:
        raise BuildError(f"{said.path}: base_sha256 is of other weights than those of {base.name} here")
    kind = "grader" if said.text("text_form") == "grader" else "encoder"
    _check_files(directory, adapter_files(kind))
    source = AdapterSource(
        base=base.name,
        directory=directory,
        files={file: file_sha256(directory / file) for file in adapter_files(kind)},
        text_form=said.text("text_form"),
    )
    values = {"kind": kind, "temperature": said.number("temperature", 1.0)} if kind == "grader" else {}
    try:
        return adapted_model(
            base,
            source,
            name=name,
            title=f"adapter on {base.name}",
            licence=said.text("licence"),
            origin=f"{directory} on {base.origin}",
            max_tokens=said.count("max_tokens", base.max_tokens),
            digest="",
            catalog_version=0,
            **values,
        )
    except ValueError as error:
        raise BuildError(f"{said.path}: {error}") from error


def bring_adapter(adapter: AdapterSource, target: Path) -> None:
    """Copies an adapter's two files into `target`, beside the base's weights, and lets only the pinned bytes through.

    Raises:
        BuildError: One is not there or too large.
        DigestMismatchError: One is not the file that was pinned, or it changed since it was described.
        OSError: `target` cannot be written.
    """
    _check_files(adapter.directory, tuple(adapter.files))
    for name, pinned in adapter.files.items():
        content = (adapter.directory / name).read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if found != pinned:
            raise DigestMismatchError(f"{adapter.directory / name} has SHA-256 {found}, not {pinned}")
        (target / name).write_bytes(content)


def _check_files(directory: Path, names: Iterable[str] = (ADAPTER_CONFIG, ADAPTER_WEIGHTS)) -> None:
    for name in names:
        path = directory / name
        if not path.is_file():
            refused = f"; {_PICKLE} is a pickle, which is never loaded: save it as safetensors"
            hint = refused if name == ADAPTER_WEIGHTS and (directory / _PICKLE).exists() else ""
            of = " of a grader" if name == HEAD_WEIGHTS else ""
            raise BuildError(f"{directory} is no adapter in PEFT's format{of}: it has no {name}{hint}")
        if path.stat().st_size > MAX_ADAPTER_BYTES:
            raise BuildError(
                f"{path} has {path.stat().st_size} bytes, at most {MAX_ADAPTER_BYTES} are read: is it a whole model?"
            )


def _check_base(path: Path, config: AdapterConfig, base: CatalogModel) -> None:
    named = config.base.rstrip("/")
    if named and named != base.origin and named.rpartition("/")[2] != base.name:
        raise BuildError(
            f"{path}: base_model_name_or_path is {config.base!r}, not {base.origin}: name its base, or correct the "
            "field where that is what the adapter was trained on"
        )


class _Said:
    """What ``gradewire.json`` says, where there is one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._values = read_json_object(path) if path.exists() else {}

    def text(self, name: str, otherwise: str = "") -> str:
        value = self._values.get(name, otherwise)
        if not isinstance(value, str):
            raise BuildError(f"{self.path}: {name} should be a string, not {value!r}")
        return value

    def count(self, name: str, otherwise: int) -> int:
        value = self._values.get(name, otherwise)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise BuildError(f"{self.path}: {name} should be a whole number from 1, not {value!r}")
        return value

    def number(self, name: str, otherwise: float) -> float:
        value = self._values.get(name, otherwise)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise BuildError(f"{self.path}: {name} should be a number, not {value!r}")
        return float(value)
