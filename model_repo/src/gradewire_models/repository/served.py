"""What callers of a model depend on in its configuration: compared between a repository and a server."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format

from gradewire_models.repository._model_config_pb2 import (
    DataType,
    ModelConfig,
    ModelInput,
    ModelInstanceGroup,
    ModelOutput,
)
from gradewire_models.repository.config import own_parameters, read_config


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model configuration, as far as a caller of the model depends on it.

    Attributes:
        max_batch_size: Rows of one request at most.
        tensors: Inputs and outputs by name, as text: ``"TYPE_FP32[-1, 384]"``, the batch dimension left out.
        facts: Our own parameters by their short names.
        instances: Runs at a time; 0 where it does not say.
        kinds: Devices it runs on, ``"KIND_CPU"``, ``"KIND_GPU"``; a server that runs it has none left to choose
            (``"KIND_AUTO"``).
        accelerators: What runs it faster, in protobuf's text form; empty for nothing.
    """

    max_batch_size: int
    tensors: Mapping[str, str]
    facts: Mapping[str, str]
    instances: int
    kinds: frozenset[str]
    accelerators: str


def served_from_file(path: Path) -> ServedModel:
    """Reads a config.pbtxt.

    Raises:
        ValueError: Not a model configuration.
        OSError: The file cannot be read.
    """
    return _served(read_config(path)[0])


def served_from_wire(content: bytes) -> ServedModel:
    """Reads a serialized ``inference.ModelConfig``, as Triton's ModelConfig call answers with.

    Raises:
        google.protobuf.message.DecodeError: It is none.
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
    """Inputs and outputs by name, as text, without the batch dimension."""
    return {**_tensors("input", config.input), **_tensors("output", config.output)}


def kinds_in(config: ModelConfig) -> frozenset[str]:
    """Kinds of device that its instances run on."""
    return frozenset(ModelInstanceGroup.Kind.Name(group.kind) for group in config.instance_group)


def accelerators_in(config: ModelConfig) -> str:
    """Accelerators in protobuf's text form; empty for none."""
    return str(text_format.MessageToString(config.optimization.execution_accelerators, as_one_line=True))


def _tensors(kind: str, tensors: Iterable[ModelInput | ModelOutput]) -> dict[str, str]:
    return {f"{kind} {each.name}": f"{DataType.Name(each.data_type)}{list(each.dims)}" for each in tensors}
