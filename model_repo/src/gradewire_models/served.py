"""What a model configuration promises to whoever runs its model: compared between a repository and a server."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gradewire_models._model_config_pb2 import DataType, ModelConfig, ModelInput, ModelOutput
from gradewire_models.config import facts_in, read_config


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model configuration, as far as a caller of the model depends on it.

    Attributes:
        max_batch_size: Rows of one request at most.
        tensors: Inputs and outputs by name, as text: ``"TYPE_FP32[-1, 384]"``, the batch dimension left out.
        facts: Our own parameters by their short names.
        instances: Runs at a time; 0 where it does not say.
    """

    max_batch_size: int
    tensors: Mapping[str, str]
    facts: Mapping[str, str]
    instances: int


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
        tensors={**_tensors("input", config.input), **_tensors("output", config.output)},
        facts=facts_in(config),
        instances=sum(group.count for group in config.instance_group),
    )


def _tensors(kind: str, tensors: Iterable[ModelInput | ModelOutput]) -> dict[str, str]:
    return {f"{kind} {each.name}": f"{DataType.Name(each.data_type)}{list(each.dims)}" for each in tensors}
