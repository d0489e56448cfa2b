"""Write a model's metadata to config.pbtxt for Triton, and read it back."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from google.protobuf import text_format

from gradewire_models.catalog.calibration import StoredCalibration, dumped, fitting, merge, of_users, read_calibration
from gradewire_models.catalog.entries import AdapterMetadata, Bertscore, EncoderMetadata
from gradewire_models.repository._model_config_pb2 import (
    TYPE_FP32,
    TYPE_INT64,
    DataType,
    ModelConfig,
    ModelInput,
    ModelInstanceGroup,
    ModelOutput,
    ModelParameter,
)
from gradewire_models.repository.digest import DigestParts, FileRecord
from gradewire_models.repository.serving import Serving, describe_serving
from gradewire_proto.wire_rules import current

FORMAT: Final = 1
_CALIBRATION_PREFIX: Final = "calibration."
_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)
_REASON_CHARACTERS: Final = 200

CONFIG_FILE = "config.pbtxt"
# Raise this when this module's output changes. A build then rewrites the config.pbtxt of an existing model.
CONFIG_VERSION = "6"
FIRST_VERSION = "1"
GRAPH_FILE = "model.onnx"
WEIGHTS_FILE = "model.onnx.data"
"""Name of the file beside the graph with the weights of a graph that would exceed an ONNX file's 2 GB."""
ONNX_FILE = f"{FIRST_VERSION}/{GRAPH_FILE}"  # a build's graph; a published graph is at `BuiltModel.onnx_path`
TOKENIZER_FILE = "tokenizer.json"

INPUT_IDS = "input_ids"
ATTENTION_MASK = "attention_mask"
SENTENCE_OUTPUT = "sentence_embedding"
LOGIT_OUTPUT = "logit"
TOKENS_OUTPUT = "token_embeddings"
FINGERPRINT_OUTPUT = "model_fingerprint"

_LAYER_OUTPUT = f"{TOKENS_OUTPUT}_layer_"

PREFIX = "gradewire."
_BASELINE_PREFIX = "bertscore_baseline_"
_NUMBERS = ("catalog_version", "dims", "layers", "max_tokens")
_TEXTS = ("licence", "numeric_class", "pooling", "prefix")
_FURTHER_TEXTS = ("architecture", "base", "build_command", "origin", "source")
"""String fields that a server does not need."""


@dataclass(frozen=True, slots=True)
class UnreadableCalibration:
    """A parameter with calibrations that this gradewire version cannot read, and a one-line reason.

    The metric fails with this model until the user replaces or removes the parameter.
    """

    metric: str
    text: str
    reason: str

    @property
    def parameter(self) -> str:
        """The parameter's short name in the description."""
        return f"{_CALIBRATION_PREFIX}{self.metric}"

    @property
    def summary(self) -> str:
        """The problem and the remedy in one line, for display."""
        return (
            f"the calibration for {self.metric} cannot be read (gradewire.{self.parameter}: {self.reason}). Fit it "
            f"again, or remove it: gradewire calibrate --undo --model NAME --metric {self.metric}"
        )


@dataclass(frozen=True, slots=True)
class Described:
    """A description's readable calibrations, sorted by `key`, and its unreadable calibrations."""

    readable: tuple[StoredCalibration, ...] = ()
    unreadable: tuple[UnreadableCalibration, ...] = ()


def to_parameters(
    calibrations: Sequence[StoredCalibration], unreadable: Iterable[UnreadableCalibration] = ()
) -> dict[str, str]:
    """Return calibrations as a description's parameters, by short name."""
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for each in merge(calibrations, ()):
        by_metric.setdefault(each.metric, []).append(_record(each))
    readable = {f"{_CALIBRATION_PREFIX}{metric}": dumped(records) for metric, records in by_metric.items()}
    return readable | {each.parameter: each.text for each in unreadable}


def calibrations_in(parameters: Mapping[str, str]) -> Described:
    """Read the calibrations from `own_parameters`."""
    found: list[StoredCalibration] = []
    unreadable: list[UnreadableCalibration] = []
    for name in sorted(parameters):
        if is_calibration(name):
            try:
                found += _records(parameters[name])
            except _UNREADABLE as error:
                # Errors quote their input, which may have megabytes.
                reason = " ".join(str(error)[:_REASON_CHARACTERS].split()) or type(error).__name__
                unreadable.append(
                    UnreadableCalibration(current(name.removeprefix(_CALIBRATION_PREFIX)), parameters[name], reason)
                )
    users = of_users(found)
    return Described(merge((each for each in found if each not in users), users), tuple(unreadable))


def is_calibration(name: str) -> bool:
    """Return True if the parameter with this short name contains calibrations."""
    return name.startswith(_CALIBRATION_PREFIX)


def _record(calibration: StoredCalibration) -> dict[str, Any]:
    record: dict[str, Any] = {"format": FORMAT}
    record |= {name: getattr(calibration, name) for name in StoredCalibration.__dataclass_fields__}
    record |= {"parameters": dict(calibration.parameters), "figures": dict(calibration.figures)}
    kept = {name: value for name, value in record.items() if value not in (None, "", {})}
    return kept | ({"fit": json.loads(calibration.fit)} if calibration.fit else {})


def _read(record: Any) -> StoredCalibration:
    if not isinstance(record, dict):
        raise TypeError("a record must be an object")
    values = dict(record)
    if (version := values.pop("format", None)) != FORMAT:
        raise ValueError(f"the format is {version!r}, but this gradewire reads {FORMAT}")
    fit = values.get("fit")
    values["fit"] = "" if fit is None else dumped(fit)
    return read_calibration(values)


@lru_cache(maxsize=16)
def _records(text: str) -> tuple[StoredCalibration, ...]:
    """Return a parameter's records, cached because repositories are listed often and a fit is long."""
    records = json.loads(text)
    if not isinstance(records, list):
        raise TypeError("the parameter must be a list of records")
    return tuple(_read(record) for record in records)


def layer_output(layer: int) -> str:
    """Return the name of the output with the token vectors after `layer` (1 is the first)."""
    return f"{_LAYER_OUTPUT}{layer}"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The sizes and digests of a model's files, and the value of its output ``model_fingerprint``, never 0.

    `weights` is the file beside the graph with the weights, or None if the graph contains them.
    """

    onnx: FileRecord
    tokenizer: FileRecord
    fingerprint: int
    weights: FileRecord | None = None


def write_config(path: Path, config: ModelConfig) -> None:
    """Write a config.pbtxt.

    Raises:
        OSError: The file is not writable.
    """
    path.write_text(text_format.MessageToString(config), encoding="utf-8")


def make_config(metadata: EncoderMetadata, files: ModelFiles, serving: Serving) -> ModelConfig:
    """Return a model's complete description, including the digest."""
    digest = digest_parts(metadata, files).digest()
    layers = {layer_output(layer): [-1, metadata.dims] for layer in metadata.earlier_layers}
    vectors = {SENTENCE_OUTPUT: [metadata.dims], TOKENS_OUTPUT: [-1, metadata.dims], **layers}
    if metadata.kind == "grader":
        vectors = {LOGIT_OUTPUT: [metadata.dims]}
    config = ModelConfig(
        name=metadata.name,
        backend="onnxruntime",
        input=[ModelInput(name=name, data_type=TYPE_INT64, dims=[-1]) for name in (INPUT_IDS, ATTENTION_MASK)],
        output=[
            *(ModelOutput(name=name, data_type=TYPE_FP32, dims=dims) for name, dims in vectors.items()),
            ModelOutput(name=FINGERPRINT_OUTPUT, data_type=TYPE_INT64, dims=[1]),
        ],
    )
    for name, value in _parameters(metadata, files, digest).items():
        config.parameters[PREFIX + name].CopyFrom(ModelParameter(string_value=value))
    describe_serving(config, serving, max_tokens=metadata.max_tokens, engine_prefix=f"{metadata.name}-{digest[:12]}")
    return config


def read_config(path: Path) -> tuple[ModelConfig, dict[str, str]]:
    """Read a config.pbtxt; return the configuration and its `own_parameters`.

    Skip unknown fields, because operators can add settings for Triton, such as rate limits.

    Raises:
        ValueError: The file is not a model configuration.
        OSError: The file is not readable.
    """
    config = ModelConfig()
    try:
        config.CopyFrom(_parsed(path.read_text(encoding="utf-8")))
    except text_format.ParseError as error:
        raise ValueError(f"{path} is not a model configuration: {error}") from error
    return config, own_parameters(config)


# ListModels reads all models on each call, and protobuf's Python parser takes 50 ms for a model.
@lru_cache(maxsize=32)
def _parsed(text: str) -> ModelConfig:
    return text_format.Parse(text, ModelConfig(), allow_unknown_field=True)


def own_parameters(config: ModelConfig) -> dict[str, str]:
    """Return the parameters that gradewire wrote (``gradewire.NAME``), by their short names."""
    return {
        key.removeprefix(PREFIX): value.string_value
        for key, value in config.parameters.items()
        if key.startswith(PREFIX)
    }


def digest_parts(metadata: EncoderMetadata, files: ModelFiles) -> DigestParts:
    """Return the values that a model's digest covers."""
    return DigestParts(
        onnx_sha256=files.onnx.sha256,
        tokenizer_sha256=files.tokenizer.sha256,
        max_tokens=metadata.max_tokens,
        pooling=metadata.pooling,
        prefix=metadata.prefix,
        numeric_class=metadata.numeric_class,
        suffix=metadata.suffix,
        weights_sha256=files.weights.sha256 if files.weights is not None else "",
    )


def _parameters(metadata: EncoderMetadata, files: ModelFiles, digest: str) -> Mapping[str, str]:
    parameters = {name: str(getattr(metadata, name)) for name in (*_NUMBERS, *_TEXTS, *_FURTHER_TEXTS)}
    parameters |= {
        "config_version": CONFIG_VERSION,
        "digest": digest,
        "fingerprint": str(files.fingerprint),
        "onnx_bytes": str(files.onnx.bytes),
        "onnx_sha256": files.onnx.sha256,
        "tokenizer_bytes": str(files.tokenizer.bytes),
        "tokenizer_sha256": files.tokenizer.sha256,
    }
    parameters |= to_parameters(fitting(metadata.calibrations, digest))
    if metadata.kind != "encoder":
        parameters["kind"] = metadata.kind
    if metadata.suffix:
        parameters["suffix"] = metadata.suffix
    if files.weights is not None:
        parameters |= {"weights_bytes": str(files.weights.bytes), "weights_sha256": files.weights.sha256}
    if metadata.bertscore is not None:
        parameters["bertscore_layer"] = str(metadata.bertscore.layer)
        for layer, baseline in metadata.bertscore.baselines.items():
            parameters[f"{_BASELINE_PREFIX}{layer}"] = " ".join(map(repr, baseline))
    if metadata.adapter is not None:
        parameters["adapter_base"] = metadata.adapter.base
        parameters["adapter_sha256"] = metadata.adapter.sha256
        parameters["text_form"] = metadata.adapter.text_form
    return parameters


def metadata_in(config: ModelConfig, calibrations: tuple[StoredCalibration, ...]) -> EncoderMetadata:
    """Read an encoder's metadata from a description, and add the `calibrations`.

    Raises:
        KeyError: A parameter is missing.
        ValueError: A number is malformed.
    """
    parameters = own_parameters(config)
    texts = {name: parameters[name] for name in _TEXTS} | {name: parameters.get(name, "") for name in _FURTHER_TEXTS}
    layers = (output.name.rpartition(_LAYER_OUTPUT) for output in config.output)
    return EncoderMetadata(
        name=config.name,
        earlier_layers=tuple(int(layer) for before, found, layer in layers if found and not before),
        dims=int(parameters["dims"]),
        layers=int(parameters["layers"]),
        max_tokens=int(parameters["max_tokens"]),
        catalog_version=int(parameters.get("catalog_version", "0")),
        calibrations=calibrations,
        bertscore=bertscore_in(parameters),
        adapter=adapter_in(parameters),
        kind=parameters.get("kind", "encoder"),
        suffix=parameters.get("suffix", ""),
        **texts,
    )


def files_in(parameters: Mapping[str, str]) -> ModelFiles:
    """Read the files' sizes and digests and the fingerprint from `own_parameters`.

    Raises:
        KeyError: A parameter is missing.
        ValueError: A size or the fingerprint is not an integer.
    """
    weights = None
    if "weights_sha256" in parameters:
        weights = FileRecord(int(parameters["weights_bytes"]), parameters["weights_sha256"])
    return ModelFiles(
        onnx=FileRecord(int(parameters["onnx_bytes"]), parameters["onnx_sha256"]),
        tokenizer=FileRecord(int(parameters["tokenizer_bytes"]), parameters["tokenizer_sha256"]),
        fingerprint=int(parameters["fingerprint"]),
        weights=weights,
    )


def adapter_in(parameters: Mapping[str, str]) -> AdapterMetadata | None:
    """Read the merged adapter from `own_parameters`; return None for a model without an adapter.

    Raises:
        KeyError: One of the adapter's parameters is missing.
    """
    if "adapter_sha256" not in parameters:
        return None
    return AdapterMetadata(parameters["adapter_base"], parameters["adapter_sha256"], parameters["text_form"])


def bertscore_in(parameters: Mapping[str, str]) -> Bertscore | None:
    """Read BERTScore's layer and baselines from `own_parameters`; return None without a layer.

    Raises:
        ValueError: A parameter is not a number, or a layer does not have three baselines.
    """
    if "bertscore_layer" not in parameters:
        return None
    baselines: dict[int, tuple[float, float, float]] = {}
    for name in parameters:
        if name.startswith(_BASELINE_PREFIX):
            precision, recall, f1 = map(float, parameters[name].split())
            baselines[int(name.removeprefix(_BASELINE_PREFIX))] = precision, recall, f1
    return Bertscore(int(parameters["bertscore_layer"]), baselines)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The fields of a model configuration that the model's callers depend on.

    Attributes:
        tensors: Types and shapes of the inputs and outputs by name, without the batch dimension: ``"TYPE_FP32[-1,
            384]"``.
        kinds: Device kinds: ``"KIND_CPU"``, ``"KIND_GPU"``, or ``"KIND_AUTO"`` if the server has not chosen yet.
        accelerators: Accelerators in protobuf's text format.
    """

    max_batch_size: int
    tensors: Mapping[str, str]
    facts: Mapping[str, str]
    instances: int
    kinds: frozenset[str]
    accelerators: str


def served_from_file(path: Path) -> ServedModel:
    """Read a config.pbtxt.

    Raises:
        ValueError: The file is not a model configuration.
        OSError: The file cannot be read.
    """
    return _served(read_config(path)[0])


def served_from_wire(content: bytes) -> ServedModel:
    """Read a serialized ``inference.ModelConfig`` from Triton's ModelConfig call.

    Raises:
        google.protobuf.message.DecodeError: `content` is malformed.
    """
    return _served(ModelConfig.FromString(content))


def _served(config: ModelConfig) -> ServedModel:
    return ServedModel(
        max_batch_size=config.max_batch_size,
        tensors=tensors_in(config),
        facts=own_parameters(config),
        instances=sum(group.count for group in config.instance_group),
        kinds=kinds_in(config),
        accelerators=accelerators_in(config),
    )


def tensors_in(config: ModelConfig) -> dict[str, str]:
    """Return the types and shapes of the inputs and outputs by name, without the batch dimension."""
    return {**_tensors("input", config.input), **_tensors("output", config.output)}


def kinds_in(config: ModelConfig) -> frozenset[str]:
    """Return the instances' device kinds."""
    return frozenset(ModelInstanceGroup.Kind.Name(group.kind) for group in config.instance_group)


def accelerators_in(config: ModelConfig) -> str:
    """Return the accelerators in protobuf's text format, or "" without accelerators."""
    return str(text_format.MessageToString(config.optimization.execution_accelerators, as_one_line=True))


def _tensors(kind: str, tensors: Iterable[ModelInput | ModelOutput]) -> dict[str, str]:
    return {f"{kind} {each.name}": f"{DataType.Name(each.data_type)}{list(each.dims)}" for each in tensors}
