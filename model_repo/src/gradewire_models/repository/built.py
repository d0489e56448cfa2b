"""Read the models in a Triton repository, without packages that build or run models."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import platformdirs

from gradewire_models.catalog.calibration import fitting
from gradewire_models.catalog.entries import EncoderMetadata
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.errors import ModelBrokenError, ModelNotBuiltError
from gradewire_models.repository.config import (
    CONFIG_FILE,
    FINGERPRINT_OUTPUT,
    FIRST_VERSION,
    GRAPH_FILE,
    LOGIT_OUTPUT,
    SENTENCE_OUTPUT,
    TOKENIZER_FILE,
    TOKENS_OUTPUT,
    WEIGHTS_FILE,
    UnreadableCalibration,
    calibrations_in,
    digest_parts,
    files_in,
    layer_output,
    metadata_in,
    read_config,
)
from gradewire_models.repository.digest import FileRecord, record_fault

T = TypeVar("T")

_MAX_NAME_BYTES = 255
"""Maximum length of a directory name on usual file systems."""

_log = logging.getLogger(__name__)
_logged: dict[Path, str] = {}
"""The last warning about each broken directory, so that each warning is logged only once."""

REPOSITORY_VARIABLE = "GRADEWIRE_MODEL_REPOSITORY"

_REQUIRED_OUTPUTS = {
    "encoder": {SENTENCE_OUTPUT, TOKENS_OUTPUT, FINGERPRINT_OUTPUT},
    "grader": {LOGIT_OUTPUT, FINGERPRINT_OUTPUT},
}


def described_in(repository: Path, file: str) -> list[Path]:
    """Return the directories with `file`, sorted by name; skip hidden directories, which are unfinished builds."""
    return sorted(path.parent for path in repository.glob(f"[!.]*/{file}"))


def find_directory(repository: Path, name: str, file: str) -> Path | None:
    """Return the directory `name` if `name` is a plain name and the directory contains `file`, otherwise None."""
    if (
        not name
        or name.startswith(".")
        or Path(name).name != name
        or len(name.encode(errors="surrogatepass")) > _MAX_NAME_BYTES
    ):
        return None
    directory = repository / name
    return directory if (directory / file).is_file() else None


def list_sound(repository: Path, file: str, describe: Callable[[Path], T]) -> list[T]:
    """Describe every directory that contains `file`, sorted by name.

    Skip a directory if `describe` raises ModelBrokenError, and log each new reason once as a warning.
    """
    found = []
    for directory in described_in(repository, file):
        try:
            found.append(describe(directory))
        except ModelBrokenError as error:
            if _logged.get(directory) != str(error):
                _logged[directory] = str(error)
                _log.warning("%s", error)
        else:
            _logged.pop(directory, None)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltModel(EncoderMetadata):
    """A model in a repository, with the description from its config.pbtxt.

    Attributes:
        version: Number of the newest version folder, whose graph Triton serves.
        onnx_path: File with the graph. The inputs are ``input_ids`` and ``attention_mask``, int64 [batch, tokens].
        weights_path: File beside the graph with the weights, or None if the graph contains them.
        tokenizer_path: File tokenizer.json, which does not pad and truncates at `max_tokens`.
        digest: SHA-256 of everything that determines a vector (`gradewire_models.repository.digest`), 64 hex
            characters.
        fingerprint: Value of the output ``model_fingerprint``, int64 [batch, 1], which identifies the graph; never 0.
        unreadable: Calibrations that cannot be read and are not used.
    """

    directory: Path
    version: int
    onnx_path: Path
    tokenizer_path: Path
    digest: str
    fingerprint: int
    unreadable: tuple[UnreadableCalibration, ...] = ()
    weights_path: Path | None = None

    @property
    def sentence_output(self) -> str:
        """The output with the unit-length sentence vectors, float32 [batch, dims], or a grader's logits."""
        return LOGIT_OUTPUT if self.kind == "grader" else SENTENCE_OUTPUT

    @property
    def temperature(self) -> float:
        """The divisor of a grader's logit; 1 for other models."""
        return float(self.pooling.rpartition("/")[2]) if self.kind == "grader" else 1.0

    @property
    def token_layers(self) -> tuple[int, ...]:
        """Layers whose token vectors are outputs, ascending and including the last layer; the first layer is 1."""
        return () if self.kind == "grader" else (*sorted(self.earlier_layers), self.layers)

    def token_output(self, layer: int) -> str:
        """Return the name of the output with the token vectors of `layer`, which must be in `token_layers`.

        The vectors are float32 [batch, tokens, dims]; rows for padding are unspecified.
        """
        return TOKENS_OUTPUT if layer == self.layers else layer_output(layer)

    @property
    def fit_summaries(self) -> tuple[str, ...]:
        """A line for each calibration. Unreadable calibrations come last, with a remedy."""
        return (*(each.summary for each in self.calibrations), *(each.summary for each in self.unreadable))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes for users, first on the model's training texts, then on each calibration."""
        return (*((self.adapter.remark,) if self.adapter and self.adapter.remark else ()), *self.fit_summaries)

    @property
    def on_cpu(self) -> bool:
        """True if the digest stands for vectors from a CPU; a GPU's vectors differ."""
        return self.numeric_class.endswith("-cpu")


def default_repository() -> Path:
    """Return the repository that is used if the caller chooses no repository.

    This is ``$GRADEWIRE_MODEL_REPOSITORY``, the checkout's ``model_repo/models``, or ``gradewire/models`` in the user's
    data directory.
    """
    named = os.environ.get(REPOSITORY_VARIABLE)
    if named:
        return Path(named).expanduser()
    source = Path(__file__).resolve().parents[3]
    if source.name == "model_repo" and (source.parent / "pyproject.toml").is_file():
        return source / "models"
    return platformdirs.user_data_path("gradewire") / "models"


def list_built(repository: Path, *, graphs: bool = True) -> list[BuiltModel]:
    """List a repository's models, sorted by name; return [] if the repository is missing.

    The files' sizes are checked, but not their digests. Broken models are skipped, and each new reason is logged once
    as a warning. If `graphs` is False, graphs may be missing, because another server runs the models.
    """
    return list_sound(repository, CONFIG_FILE, lambda directory: _describe(directory, graph=graphs)[0])


def load_built(repository: Path, name: str, *, graph: bool = True) -> BuiltModel:
    """Describe a model after checking every byte of its graph and tokenizer (0.1 s for 90 MB).

    If `graph` is False, check only the tokenizer, because the graph may be missing.

    Raises:
        ModelNotBuiltError: The model is missing.
        ModelBrokenError: The files do not match the description.
    """
    directory = find_directory(repository, name, CONFIG_FILE)
    if directory is None:
        raise ModelNotBuiltError(f"model {name!r} is not built in {repository}. {_build_hint(name)}")
    while True:
        stamp = _stamp(directory)
        try:
            return _load(directory, graph=graph)
        except ModelBrokenError:
            # Another process may replace the model between two reads, so read it again.
            if _stamp(directory) == stamp:
                raise


def _stamp(directory: Path) -> tuple[int, int] | None:
    try:
        status = (directory / CONFIG_FILE).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _load(directory: Path, *, graph: bool) -> BuiltModel:
    model, records = _describe(directory, graph=graph)
    for path, record in records.items():
        if fault := record_fault(path, record):
            raise _broken(directory, fault)
    return model


def newest_version(directory: Path) -> int | None:
    """Return the number of a model's newest version folder, which Triton serves, or None without such a folder."""
    versions = [int(path.name) for path in directory.glob("[1-9]*") if path.name.isascii() and path.name.isdigit()]
    return max(versions, default=None)


def _describe(directory: Path, *, graph: bool) -> tuple[BuiltModel, dict[Path, FileRecord]]:
    try:
        config, parameters = read_config(directory / CONFIG_FILE)
        files = files_in(parameters)
        fitted = calibrations_in(parameters)
        digest = parameters["digest"]
        metadata = metadata_in(config, fitting(fitted.readable, digest))
        if metadata.kind not in _REQUIRED_OUTPUTS:
            raise _broken(
                directory,
                f"{CONFIG_FILE} describes a model of kind {metadata.kind!r}, which this release does not support",
            )
        version = newest_version(directory) or int(FIRST_VERSION)
        onnx_path, tokenizer_path = directory / str(version) / GRAPH_FILE, directory / TOKENIZER_FILE
        records = {tokenizer_path: files.tokenizer}
        weights_path = None if files.weights is None else onnx_path.with_name(WEIGHTS_FILE)
        if graph:
            records[onnx_path] = files.onnx
            if files.weights is not None and weights_path is not None:
                records[weights_path] = files.weights
        found = {path: path.stat().st_size for path in records}
        model = BuiltModel(
            **{each.name: getattr(metadata, each.name) for each in fields(metadata)},
            directory=directory,
            version=version,
            onnx_path=onnx_path,
            tokenizer_path=tokenizer_path,
            digest=digest,
            fingerprint=files.fingerprint,
            unreadable=fitted.unreadable,
            weights_path=weights_path,
        )
        checked = model.temperature > 0 and digest_parts(model, files).digest() == digest
    except KeyError as error:
        raise _broken(directory, f"{CONFIG_FILE} lacks the parameter gradewire.{error.args[0]}") from error
    except (OSError, ValueError) as error:
        raise _broken(directory, str(error)) from error
    if config.name != directory.name:
        raise _broken(directory, f"{CONFIG_FILE} describes {config.name!r}")
    wrong = [path for path, record in records.items() if found[path] != record.bytes]
    if wrong:
        said = ", ".join(f"{path.name} has {found[path]} bytes, not {records[path].bytes}" for path in wrong)
        raise _broken(directory, f"{said} as in {CONFIG_FILE}")
    outputs = [output.name for output in config.output]
    if not set(outputs) >= _REQUIRED_OUTPUTS[model.kind]:
        raise _broken(directory, f"{CONFIG_FILE} names the outputs {outputs}")
    if not checked:
        raise _broken(directory, f"{CONFIG_FILE} was changed after the build: digest and values do not match")
    return model, records


def _build_hint(name: str, described: str = "") -> str:
    catalog = load_catalog()
    command = catalog[name].build_hint if name in catalog else described
    if command:
        return f"Run: {command}"
    return f"The catalog has {', '.join(catalog)}. Run: gradewire models build NAME"


def _broken(directory: Path, reason: str) -> ModelBrokenError:
    try:
        described = read_config(directory / CONFIG_FILE)[1].get("build_command", "")
    except (OSError, ValueError):
        described = ""
    hint = _build_hint(directory.name, described)
    return ModelBrokenError(f"model {directory.name!r} is broken: {reason}. {hint}")
