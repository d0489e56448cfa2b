"""The calibrations that the catalog brings for a model: ``[[model.calibrations]]``."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gradewire_models.catalog.calibration import StoredCalibration, merge


def read_calibrations(
    entries: Iterable[Mapping[str, Any]], directory: Path, digest: str
) -> tuple[StoredCalibration, ...]:
    """Reads them.

    Args:
        entries: Tables with the fields of `StoredCalibration`; `parameters` and `figures` are tables, and in the place
            of `fit` a `fit_file` names a JSON file.
        directory: Where such files lie.
        digest: Of the model, on whose scores all were fitted.

    Raises:
        KeyError: A field is missing.
        TypeError: A field is unknown or of a wrong kind.
        ValueError: A value is not what it should be, a file cannot be read, or two are for the same scores.
    """
    found = [_read(entry, directory, digest) for entry in entries]
    merged = merge(found, ())
    if len(merged) < len(found):
        raise ValueError("two calibrations are for the same metric and parameters")
    return merged


def _read(entry: Mapping[str, Any], directory: Path, digest: str) -> StoredCalibration:
    values = dict(entry)
    for name in ("parameters", "figures"):
        if not isinstance(table := values.get(name, {}), Mapping):
            raise TypeError(f"{name} should be a table, not {table!r}")
        values[name] = tuple(table.items())
    if "fit_file" in values:
        path = directory / values.pop("fit_file")
        try:
            values["fit"] = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"cannot read {path}: {error}") from error
    return StoredCalibration(**values, model_digest=digest, origin="catalog")
