"""What users fitted for a model: put into its description, taken out, carried over when the model is built anew."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format

from gradewire_models._model_config_pb2 import ModelConfig, ModelParameter
from gradewire_models.build.lock import exclusive
from gradewire_models.build.progress import Report, ignore
from gradewire_models.calibration import (
    StoredCalibration,
    calibrations_in,
    fitting,
    is_calibration,
    merge,
    of_users,
    to_parameters,
)
from gradewire_models.catalog import load_catalog
from gradewire_models.config import CONFIG_FILE, PREFIX, facts_in, read_config, write_config
from gradewire_models.errors import BuildError, ModelNotBuiltError
from gradewire_models.repository import BuiltModel, load_built

# One parameter as `write_config` writes it; what somebody wrote otherwise is written anew with the whole file.
_PARAMETER = re.compile(
    r'^parameters \{\n  key: "' + re.escape(PREFIX) + r'(?P<name>[\w.]+)"\n  value \{\n'
    r'    string_value: "(?:[^"\\\n]|\\.)*"\n  \}\n\}\n',
    re.MULTILINE,
)


def store_calibration(
    repository: Path, name: str, calibration: StoredCalibration, *, report: Report = ignore
) -> BuiltModel:
    """Puts a user's calibration into a model's description; it takes the place of one for the same scores.

    Waits for whoever builds the model. Readers see the old description or the new one, whole. A server that has the
    model loaded goes on with what it read.

    Args:
        repository: Directory of models.
        name: Of the model.
        calibration: Of origin "user", fitted on this model's scores.
        report: Told when it has to wait.

    Raises:
        ModelError: The model is not there, is broken or another one, or cannot be written; the message says what to do.
    """
    try:
        with _alone(repository, name, report):
            model = load_built(repository, name, graph=False)
            if model.digest != calibration.model_digest:
                raise BuildError(
                    f"the scores are of {name} with digest {calibration.model_digest[:12]}, {repository} holds "
                    f"{model.digest[:12]}: score the rows with that one"
                )
            _write(model.directory / CONFIG_FILE, merge(model.calibrations, (calibration,)))
    except OSError as error:
        raise _cannot_write(repository, name, error) from error
    return load_built(repository, name, graph=False)


def forget_calibrations(
    repository: Path, name: str, metric: str = "", *, report: Report = ignore
) -> tuple[StoredCalibration, ...]:
    """Takes what users fitted out of a model's description; what the catalog brings counts again.

    Works where the description's calibrations cannot be read, too: then all of them go.

    Args:
        repository: Directory of models.
        name: Of the model.
        metric: Whose calibrations; "" for all.
        report: Told when it has to wait.

    Returns:
        What is gone, as far as it could be read.

    Raises:
        ModelError: The model is not there, or cannot be written.
    """
    try:
        with _alone(repository, name, report):
            path = repository / name / CONFIG_FILE
            facts = read_config(path)[1]
            try:
                standing = calibrations_in(facts)
            except ValueError:
                standing = ()
            gone = tuple(each for each in of_users(standing) if metric in {"", each.metric})
            known = load_catalog().get(name)
            listed = known.calibrations if known is not None and known.digest == facts.get("digest") else ()
            _write(path, merge(listed, (each for each in of_users(standing) if each not in gone)))
    except ValueError as error:
        raise BuildError(f"cannot read the description of {name} in {repository}: {error}") from error
    except OSError as error:
        raise _cannot_write(repository, name, error) from error
    return gone


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of users' calibrations when their model was made anew.

    Attributes:
        kept: They were fitted on this very model.
        dropped: They were fitted on one of another digest: they would hold for none of its scores.
    """

    kept: tuple[StoredCalibration, ...] = ()
    dropped: tuple[StoredCalibration, ...] = ()


def carry_calibrations(standing: Path, made: Path) -> Carried:
    """Puts what users fitted for the model in `standing` into the one in `made`, where it has the same digest.

    Args:
        standing: The model's directory in the repository; need not be there, nor be whole.
        made: Its directory in the workspace.

    Raises:
        OSError: The description in `made` cannot be read or written.
    """
    try:
        users = of_users(calibrations_in(read_config(standing / CONFIG_FILE)[1]))
    except (OSError, ValueError, KeyError):
        return Carried()
    if not users:
        return Carried()
    facts = read_config(made / CONFIG_FILE)[1]
    kept = fitting(users, facts["digest"])
    if kept:
        _write(made / CONFIG_FILE, merge(calibrations_in(facts), kept))
    return Carried(kept, tuple(each for each in users if each not in kept))


def _alone(repository: Path, name: str, report: Report) -> AbstractContextManager[None]:
    if not name or Path(name).name != name or not (repository / name / CONFIG_FILE).is_file():
        raise ModelNotBuiltError(f"model {name!r} is not built in {repository}; build it with: gradewire models build")
    return exclusive(repository / f".{name}.lock", report)


def _cannot_write(repository: Path, name: str, error: OSError) -> BuildError:
    return BuildError(f"cannot write the description of {name} in {repository}: {error}; nothing was changed")


def _write(path: Path, calibrations: Sequence[StoredCalibration]) -> None:
    """Replaces the calibrations of a description, in one step; all else in the file stays, letter by letter."""
    text = path.read_text(encoding="utf-8")
    wanted = to_parameters(calibrations)
    added = ModelConfig()
    for name, value in wanted.items():
        added.parameters[PREFIX + name].CopyFrom(ModelParameter(string_value=value))
    kept = _PARAMETER.sub(lambda found: "" if is_calibration(found["name"]) else found.group(), text)
    written = path.with_name(f".{CONFIG_FILE}.new")
    written.write_text(kept + text_format.MessageToString(added), encoding="utf-8")
    if read_config(written)[1] != {**_without(read_config(path)[1]), **wanted}:
        config = read_config(path)[0]
        for name in [name for name in facts_in(config) if is_calibration(name)]:
            del config.parameters[PREFIX + name]
        config.MergeFrom(added)
        write_config(written, config)
    written.replace(path)


def _without(facts: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if not is_calibration(name)}
