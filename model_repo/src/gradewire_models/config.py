"""config.pbtxt: how a model's facts are written for Triton and read back by everybody."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format

from gradewire_models._model_config_pb2 import (
    TYPE_FP32,
    TYPE_INT64,
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelOutput,
    ModelParameter,
)
from gradewire_models.catalog import CatalogModel
from gradewire_models.digest import DigestParts

CONFIG_FILE = "config.pbtxt"
ONNX_FILE = "1/model.onnx"
TOKENIZER_FILE = "tokenizer.json"

INPUT_IDS = "input_ids"
ATTENTION_MASK = "attention_mask"
SENTENCE_OUTPUT = "sentence_embedding"
TOKENS_OUTPUT = "token_embeddings"
FINGERPRINT_OUTPUT = "model_fingerprint"

MAX_BATCH_SIZE = 1024
PREFERRED_BATCH_SIZES = (32, 64, 128)
MAX_QUEUE_DELAY_US = 500

_PREFIX = "gradewire."


def layer_output(layer: int) -> str:
    """Name of the output that carries the token vectors after `layer` (1 is the first)."""
    return f"{TOKENS_OUTPUT}_layer_{layer}"


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """What is only known once a model is written.

    Attributes:
        parts: What the model's digest is made of.
        fingerprint: What the graph's output ``model_fingerprint`` holds, in the range of int64, never 0.
        onnx_bytes: Size of model.onnx.
        tokenizer_bytes: Size of tokenizer.json.
    """

    parts: DigestParts
    fingerprint: int
    onnx_bytes: int
    tokenizer_bytes: int


def write_config(path: Path, model: CatalogModel, facts: BuildFacts) -> None:
    """Writes the config.pbtxt of `model`.

    Raises:
        OSError: The file cannot be written.
    """
    layers = {layer_output(layer): [-1, model.dims] for layer in model.token_layers}
    vectors = {SENTENCE_OUTPUT: [model.dims], TOKENS_OUTPUT: [-1, model.dims], **layers}
    config = ModelConfig(
        name=model.name,
        backend="onnxruntime",
        max_batch_size=MAX_BATCH_SIZE,
        input=[ModelInput(name=name, data_type=TYPE_INT64, dims=[-1]) for name in (INPUT_IDS, ATTENTION_MASK)],
        output=[
            *(ModelOutput(name=name, data_type=TYPE_FP32, dims=dims) for name, dims in vectors.items()),
            ModelOutput(name=FINGERPRINT_OUTPUT, data_type=TYPE_INT64, dims=[1]),
        ],
        dynamic_batching=ModelDynamicBatching(
            preferred_batch_size=PREFERRED_BATCH_SIZES, max_queue_delay_microseconds=MAX_QUEUE_DELAY_US
        ),
        parameters={
            _PREFIX + key: ModelParameter(string_value=value) for key, value in _parameters(model, facts).items()
        },
    )
    path.write_text(text_format.MessageToString(config), encoding="utf-8")


def read_config(path: Path) -> tuple[ModelConfig, dict[str, str]]:
    """Reads a config.pbtxt.

    Returns:
        The configuration, and gradewire's own parameters in it by their short names. Fields of Triton's that are not
        ours are skipped, so a file that somebody extended (instance groups, optimisation) still reads.

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
        key.removeprefix(_PREFIX): value.string_value
        for key, value in config.parameters.items()
        if key.startswith(_PREFIX)
    }


def _parameters(model: CatalogModel, facts: BuildFacts) -> Mapping[str, str]:
    parts = facts.parts
    parameters = {
        "architecture": model.architecture,
        "catalog_version": str(model.catalog_version),
        "digest": parts.digest(),
        "dims": str(model.dims),
        "fingerprint": str(facts.fingerprint),
        "layers": str(model.layers),
        "licence": model.licence,
        "max_tokens": str(parts.max_tokens),
        "numeric_class": parts.numeric_class,
        "onnx_bytes": str(facts.onnx_bytes),
        "onnx_sha256": parts.onnx_sha256,
        "origin": model.origin,
        "pooling": parts.pooling,
        "prefix": parts.prefix,
        "source": " ".join(source.requirement for source in model.sources),
        "tokenizer_bytes": str(facts.tokenizer_bytes),
        "tokenizer_sha256": parts.tokenizer_sha256,
    }
    if model.smile_calibration is not None:
        threshold, sentence_weight = model.smile_calibration
        parameters["smile_threshold"] = repr(threshold)
        parameters["smile_sentence_weight"] = repr(sentence_weight)
    return parameters
