"""config.pbtxt: how a model's facts are written for Triton and read back by everybody."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format

from gradewire_models.catalog.calibration import fitting
from gradewire_models.catalog.facts import AdapterFacts, Bertscore, EncoderFacts
from gradewire_models.repository._model_config_pb2 import (
    TYPE_FP32,
    TYPE_INT64,
    ModelConfig,
    ModelInput,
    ModelOutput,
    ModelParameter,
)
from gradewire_models.repository.calibration_records import to_parameters
from gradewire_models.repository.digest import DigestParts
from gradewire_models.repository.serving import Serving, describe_serving

CONFIG_FILE = "config.pbtxt"
# Raised when what we write changes; a build then writes the file of a model that is there anew, and keeps the model.
CONFIG_VERSION = "6"
FIRST_VERSION = "1"
GRAPH_FILE = "model.onnx"
ONNX_FILE = f"{FIRST_VERSION}/{GRAPH_FILE}"  # where a graph is written; `BuiltModel.onnx_path` says where it lies
TOKENIZER_FILE = "tokenizer.json"

INPUT_IDS = "input_ids"
ATTENTION_MASK = "attention_mask"
SENTENCE_OUTPUT = "sentence_embedding"
TOKENS_OUTPUT = "token_embeddings"
FINGERPRINT_OUTPUT = "model_fingerprint"

PREFIX = "gradewire."
_BASELINE = "bertscore_baseline_"


def layer_output(layer: int) -> str:
    """Name of the output that carries the token vectors after `layer` (1 is the first)."""
    return f"{TOKENS_OUTPUT}_layer_{layer}"


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is only known once a model is written.

    Attributes:
        onnx_sha256: SHA-256 of model.onnx, 64 hex characters.
        onnx_bytes: Its size.
        tokenizer_sha256: SHA-256 of tokenizer.json, 64 hex characters.
        tokenizer_bytes: Its size.
        fingerprint: What the graph's output ``model_fingerprint`` holds, in the range of int64, never 0.
    """

    onnx_sha256: str
    onnx_bytes: int
    tokenizer_sha256: str
    tokenizer_bytes: int
    fingerprint: int


def write_config(path: Path, config: ModelConfig) -> None:
    """Writes a config.pbtxt.

    Raises:
        OSError: The file cannot be written.
    """
    path.write_text(text_format.MessageToString(config), encoding="utf-8")


def make_config(facts: EncoderFacts, files: FileFacts, serving: Serving) -> ModelConfig:
    """Says everything about a model, its digest included.

    Args:
        facts: What the encoder is.
        files: What it is made of.
        serving: How Triton is to run it.
    """
    digest = _digest_parts(facts, files).digest()
    layers = {layer_output(layer): [-1, facts.dims] for layer in facts.token_layers}
    vectors = {SENTENCE_OUTPUT: [facts.dims], TOKENS_OUTPUT: [-1, facts.dims], **layers}
    config = ModelConfig(
        name=facts.name,
        backend="onnxruntime",
        input=[ModelInput(name=name, data_type=TYPE_INT64, dims=[-1]) for name in (INPUT_IDS, ATTENTION_MASK)],
        output=[
            *(ModelOutput(name=name, data_type=TYPE_FP32, dims=dims) for name, dims in vectors.items()),
            ModelOutput(name=FINGERPRINT_OUTPUT, data_type=TYPE_INT64, dims=[1]),
        ],
    )
    for name, value in _parameters(facts, files, digest).items():
        config.parameters[PREFIX + name].CopyFrom(ModelParameter(string_value=value))
    describe_serving(config, serving, max_tokens=facts.max_tokens, engine_prefix=f"{facts.name}-{digest[:12]}")
    return config


def read_config(path: Path) -> tuple[ModelConfig, dict[str, str]]:
    """Reads a config.pbtxt.

    Returns:
        The configuration, and gradewire's own parameters in it by their short names. Fields of Triton's that are not
        ours are skipped, so a file that somebody extended (rate limits, graph optimisation) still reads.

    Raises:
        ValueError: Not a model configuration.
        OSError: The file cannot be read.
    """
    try:
        config = text_format.Parse(path.read_text(encoding="utf-8"), ModelConfig(), allow_unknown_field=True)
    except text_format.ParseError as error:
        raise ValueError(f"{path} is not a model configuration: {error}") from error
    return config, facts_in(config)


def facts_in(config: ModelConfig) -> dict[str, str]:
    """Our own parameters in a configuration, by their short names."""
    return {
        key.removeprefix(PREFIX): value.string_value
        for key, value in config.parameters.items()
        if key.startswith(PREFIX)
    }


def _digest_parts(facts: EncoderFacts, files: FileFacts) -> DigestParts:
    return DigestParts(
        onnx_sha256=files.onnx_sha256,
        tokenizer_sha256=files.tokenizer_sha256,
        max_tokens=facts.max_tokens,
        pooling=facts.pooling,
        prefix=facts.prefix,
        numeric_class=facts.numeric_class,
    )


def _parameters(facts: EncoderFacts, files: FileFacts, digest: str) -> Mapping[str, str]:
    parameters: dict[str, str] = {
        "architecture": facts.architecture,
        "base": facts.base,
        "build_command": facts.build_command,
        "catalog_version": str(facts.catalog_version),
        "config_version": CONFIG_VERSION,
        "digest": digest,
        "dims": str(facts.dims),
        "fingerprint": str(files.fingerprint),
        "layers": str(facts.layers),
        "licence": facts.licence,
        "max_tokens": str(facts.max_tokens),
        "numeric_class": facts.numeric_class,
        "onnx_bytes": str(files.onnx_bytes),
        "onnx_sha256": files.onnx_sha256,
        "origin": facts.origin,
        "pooling": facts.pooling,
        "prefix": facts.prefix,
        "source": facts.source,
        "tokenizer_bytes": str(files.tokenizer_bytes),
        "tokenizer_sha256": files.tokenizer_sha256,
    }
    parameters |= to_parameters(fitting(facts.calibrations, digest))
    if facts.bertscore is not None:
        parameters["bertscore_layer"] = str(facts.bertscore.layer)
        for layer, baseline in facts.bertscore.baselines.items():
            parameters[f"{_BASELINE}{layer}"] = " ".join(map(repr, baseline))
    if facts.adapter is not None:
        parameters["adapter_base"] = facts.adapter.base
        parameters["adapter_sha256"] = facts.adapter.sha256
        parameters["text_form"] = facts.adapter.text_form
    return parameters


def adapter_in(facts: Mapping[str, str]) -> AdapterFacts | None:
    """What a configuration says of the adapter in the weights, of our own parameters in it.

    Raises:
        KeyError: It says so in part.
    """
    if "adapter_sha256" not in facts:
        return None
    return AdapterFacts(facts["adapter_base"], facts["adapter_sha256"], facts["text_form"])


def bertscore_in(facts: Mapping[str, str]) -> Bertscore | None:
    """What a configuration says of BERTScore, of our own parameters in it.

    Raises:
        ValueError: It says it in another form.
    """
    if "bertscore_layer" not in facts:
        return None
    baselines: dict[int, tuple[float, float, float]] = {}
    for name in facts:
        if name.startswith(_BASELINE):
            precision, recall, f1 = map(float, facts[name].split())
            baselines[int(name.removeprefix(_BASELINE))] = precision, recall, f1
    return Bertscore(int(facts["bertscore_layer"]), baselines)
