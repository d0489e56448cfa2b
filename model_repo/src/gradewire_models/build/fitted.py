"""Store, remove and preserve users' calibrations in a model's description."""

import json
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias

from google.protobuf import text_format

from gradewire_models.catalog.calibration import StoredCalibration, fitting, merge, of_users
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.errors import BuildError, ModelNotBuiltError
from gradewire_models.locks import exclusive
from gradewire_models.repository._model_config_pb2 import ModelConfig, ModelParameter
from gradewire_models.repository.built import BuiltModel, find_directory, load_built
from gradewire_models.repository.config import (
    CONFIG_FILE,
    PREFIX,
    Described,
    UnreadableCalibration,
    calibrations_in,
    is_calibration,
    own_parameters,
    read_config,
    to_parameters,
    write_config,
)

Fitted: TypeAlias = StoredCalibration | UnreadableCalibration

REPLACED_FILE = "replaced_calibrations.json"
"""File in a model's directory with the users' calibrations that later ones have replaced, one for each key."""

# A parameter in the format of `write_config`. `_write` rewrites a file in any other format.
_PARAMETER = re.compile(
    r'^parameters \{\n  key: "' + re.escape(PREFIX) + r'(?P<name>[\w.]+)"\n  value \{\n'
    r'    string_value: "(?:[^"\\\n]|\\.)*"\n  \}\n\}\n',
    re.MULTILINE,
)


def store_calibration(repository: Path, name: str, calibration: StoredCalibration) -> BuiltModel:
    """Store a user's calibration in a model's description; replace the calibration for the same metric and parameters.

    A user's calibration that is replaced goes to `REPLACED_FILE`, from which `forget_calibrations` restores it. This
    also removes the metric's unreadable calibrations. A server that has already loaded the model keeps the old
    calibrations.

    Raises:
        ModelError: The model is missing, is broken or has a different digest, or its description is not writable. The
            message states the remedy.
    """
    try:
        with _alone(repository, name):
            model = load_built(repository, name, graph=False)
            if model.digest != calibration.model_digest:
                raise BuildError(
                    f"the scores are from {name} with digest {calibration.model_digest[:12]}, but {repository} has "
                    f"digest {model.digest[:12]}. Score the rows with that model"
                )
            left = tuple(each for each in model.unreadable if each.metric != calibration.metric)
            below = model.calibrations
            if left != model.unreadable:
                listed = (each for each in _listed(name, model.digest) if each.metric == calibration.metric)
                below = merge(listed, below)
            same = (each for each in of_users(model.calibrations) if each.key == calibration.key)
            if replaced := [each for each in same if each != calibration]:
                _write_replaced(model.directory, merge(_replaced(model.directory), replaced))
            _write(model.directory / CONFIG_FILE, Described(merge(below, (calibration,)), left))
    except OSError as error:
        raise _cannot_write(repository, name, error) from error
    return load_built(repository, name, graph=False)


def removable_calibrations(repository: Path, name: str, metric: str = "") -> tuple[Fitted, ...]:
    """Return the calibrations that `forget_calibrations` would remove, and write nothing.

    Raises:
        ModelError: The model is missing or its description is not readable.
    """
    _check_built(repository, name)
    try:
        return _removable(calibrations_in(read_config(repository / name / CONFIG_FILE)[1]), metric)
    except (OSError, ValueError) as error:
        raise _cannot_read(repository, name, error) from error


def forget_calibrations(repository: Path, name: str, metric: str = "") -> tuple[Fitted, ...]:
    """Remove users' calibrations for `metric` ("" for all metrics) from a model's description, and return them.

    Unreadable calibrations are also removed. The calibrations that they replaced apply again: those in `REPLACED_FILE`,
    otherwise the catalog's. If there is nothing to remove, the description stays unchanged.

    Raises:
        ModelError: The model is missing or not writable.
    """
    try:
        with _alone(repository, name):
            path = repository / name / CONFIG_FILE
            parameters = read_config(path)[1]
            standing = calibrations_in(parameters)
            gone = _removable(standing, metric)
            if gone:
                back = _restorable(repository / name, gone, parameters.get("digest", ""))
                users = (*(each for each in of_users(standing.readable) if each not in gone), *back)
                kept = merge(_listed(name, parameters.get("digest", "")), users)
                _write(path, Described(kept, tuple(each for each in standing.unreadable if each not in gone)))
                left = [each for each in _replaced(path.parent) if each not in back]
                _write_replaced(path.parent, left)
    except ValueError as error:
        raise _cannot_read(repository, name, error) from error
    except OSError as error:
        raise _cannot_write(repository, name, error) from error
    return gone


def restorable_calibrations(repository: Path, name: str, metric: str = "") -> tuple[StoredCalibration, ...]:
    """Return the users' calibrations that `forget_calibrations` would restore, and write nothing.

    Raises:
        ModelError: The model is missing or its description is not readable.
    """
    gone = removable_calibrations(repository, name, metric)
    digest = read_config(repository / name / CONFIG_FILE)[1].get("digest", "")
    return _restorable(repository / name, gone, digest)


def _restorable(directory: Path, gone: Iterable[Fitted], digest: str) -> tuple[StoredCalibration, ...]:
    keys = {each.key for each in gone if isinstance(each, StoredCalibration)}
    return tuple(each for each in _replaced(directory) if each.key in keys and each.model_digest == digest)


def _replaced(directory: Path) -> tuple[StoredCalibration, ...]:
    try:
        return calibrations_in(json.loads((directory / REPLACED_FILE).read_text(encoding="utf-8"))).readable
    except FileNotFoundError:
        return ()


def _write_replaced(directory: Path, calibrations: Iterable[StoredCalibration]) -> None:
    path, kept = directory / REPLACED_FILE, tuple(calibrations)
    if not kept:
        path.unlink(missing_ok=True)
        return
    written = path.with_name(f".{REPLACED_FILE}.new")
    written.write_text(json.dumps(to_parameters(kept)), encoding="utf-8")
    written.replace(path)


def _removable(standing: Described, metric: str) -> tuple[Fitted, ...]:
    there: tuple[Fitted, ...] = (*of_users(standing.readable), *standing.unreadable)
    return tuple(each for each in there if metric in {"", each.metric})


def carry_calibrations(standing: Path, made: Path) -> tuple[Fitted, ...]:
    """From the model in `standing`, copy the users' calibrations that still apply to its replacement in `made`.

    Copy only calibrations that were fitted on a model with the replacement's digest. Return the users' calibrations
    that are not copied. `standing` may be missing or broken.

    Raises:
        OSError: The description in `made` is not readable or writable.
    """
    try:
        before = read_config(standing / CONFIG_FILE)[1]
        found = calibrations_in(before)
    except (OSError, ValueError, KeyError):
        return ()
    parameters = read_config(made / CONFIG_FILE)[1]
    users = of_users(found.readable)
    readable = fitting(users, parameters["digest"])
    unreadable = found.unreadable if before.get("digest") == parameters["digest"] else ()
    if before.get("digest") == parameters["digest"]:
        _write_replaced(made, _replaced(standing))
    if readable or unreadable:
        _write(made / CONFIG_FILE, Described(merge(calibrations_in(parameters).readable, readable), unreadable))
    there: tuple[Fitted, ...] = (*users, *found.unreadable)
    return tuple(each for each in there if each not in (*readable, *unreadable))


def _listed(name: str, digest: str) -> tuple[StoredCalibration, ...]:
    known = load_catalog().get(name)
    return known.calibrations if known is not None and known.digest == digest else ()


def _alone(repository: Path, name: str) -> AbstractContextManager[None]:
    _check_built(repository, name)
    return exclusive(repository / f".{name}.lock", lambda _: None)


def _check_built(repository: Path, name: str) -> None:
    if find_directory(repository, name, CONFIG_FILE) is None:
        raise ModelNotBuiltError(f"model {name!r} is not built in {repository}. Run: gradewire models build")


def _cannot_read(repository: Path, name: str, error: Exception) -> BuildError:
    return BuildError(f"cannot read the description of {name} in {repository}: {error}")


def _cannot_write(repository: Path, name: str, error: OSError) -> BuildError:
    return BuildError(f"cannot write the description of {name} in {repository}: {error}. Nothing was changed")


def _write(path: Path, calibrations: Described) -> None:
    """Replace the calibrations in a description in one step; keep all other bytes if possible."""
    text = path.read_text(encoding="utf-8")
    wanted = to_parameters(calibrations.readable, calibrations.unreadable)
    added = ModelConfig()
    for name, value in wanted.items():
        added.parameters[PREFIX + name].CopyFrom(ModelParameter(string_value=value))
    kept = _PARAMETER.sub(lambda found: "" if is_calibration(found["name"]) else found.group(), text)
    written = path.with_name(f".{CONFIG_FILE}.new")
    written.write_text(kept + text_format.MessageToString(added), encoding="utf-8")
    others = {name: value for name, value in read_config(path)[1].items() if not is_calibration(name)}
    if read_config(written)[1] != others | wanted:
        config = read_config(path)[0]
        for name in [name for name in own_parameters(config) if is_calibration(name)]:
            del config.parameters[PREFIX + name]
        config.MergeFrom(added)
        write_config(written, config)
    written.replace(path)
