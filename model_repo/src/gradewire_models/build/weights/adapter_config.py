"""adapter_config.json of PEFT: what of it can be merged, and an error for everything else."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from gradewire_models.errors import BuildError

MAX_CONFIG_BYTES = 1 << 20

# They decide how an adapter was trained, or name versions and places: not what it computes.
_OF_NO_CONSEQUENCE = frozenset(
    {
        "auto_mapping",
        "base_model_name_or_path",
        "ensure_weight_tying",
        "inference_mode",
        "lora_dropout",
        "megatron_core",
        "peft_version",
        "qalora_group_size",
        "revision",
        "task_type",
    }
)
_READ = frozenset({"init_lora_weights", "layers_to_transform", "lora_alpha", "peft_type", "r", "target_modules"})
# Other ways to start (pissa, olora, eva, …) change the base's weights, to which the matrices then belong.
_PLAIN_STARTS = (True, False, "gaussian")
_MAX_ALPHA = 1_000_000
_OFF: tuple[object, ...] = (None, False, "none", "", [], {})


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """An adapter's shape.

    Attributes:
        rank: Columns of one matrix and rows of the other, at least 1.
        scale: Factor of their product: PEFT's lora_alpha / r.
        targets: Ends of the names of the layers that have one.
        layers: Encoder layers that have one, counted from 0; None for all.
        base: What it says it was trained on: a name, an id of a hub or a path; empty where it does not say.
    """

    rank: int
    scale: float
    targets: tuple[str, ...]
    layers: tuple[int, ...] | None
    base: str

    def wants(self, module: str, layer: int) -> bool:
        """Whether the linear layer `module` of encoder layer `layer`, counted from 0, has an adapter."""
        of_a_layer = self.layers is None or layer in self.layers
        return of_a_layer and any(module == end or module.endswith(f".{end}") for end in self.targets)


def read_adapter_config(path: Path) -> AdapterConfig:
    """Reads an adapter_config.json.

    Raises:
        BuildError: It is not there or none, or asks for something that cannot be merged; the message names the field.
    """
    fields = read_json_object(path)
    if fields.get("peft_type") != "LORA":
        raise _refused(path, "peft_type", fields.get("peft_type"), '"LORA"')
    rank, alpha = fields.get("r"), fields.get("lora_alpha")
    if not _is_whole(rank) or rank < 1:
        raise _refused(path, "r", rank, "a whole number from 1")
    if not (_is_whole(alpha) or isinstance(alpha, float)) or not 0 < alpha <= _MAX_ALPHA:
        raise _refused(path, "lora_alpha", alpha, f"a number above 0, at most {_MAX_ALPHA}")
    targets = fields.get("target_modules")
    if not isinstance(targets, list) or not targets or not all(isinstance(each, str) and each for each in targets):
        raise _refused(path, "target_modules", targets, "a list of names of layers")
    start = fields.get("init_lora_weights", True)
    if start not in _PLAIN_STARTS:
        raise _refused(path, "init_lora_weights", start, 'true, false or "gaussian": other ways change the base')
    base = fields.get("base_model_name_or_path") or ""
    if not isinstance(base, str):
        raise _refused(path, "base_model_name_or_path", base, "a name")
    for name, value in fields.items():
        if name not in _READ | _OF_NO_CONSEQUENCE and value not in _OFF:
            raise _refused(path, name, value, "off: it cannot be merged into the weights")
    return AdapterConfig(
        rank=rank,
        scale=alpha / rank,
        targets=tuple(targets),
        layers=_layers(path, fields.get("layers_to_transform")),
        base=base,
    )


def read_json_object(path: Path) -> dict[str, Any]:
    """Reads a small JSON file that holds an object.

    Raises:
        BuildError: It cannot be read, is larger than `MAX_CONFIG_BYTES` or holds something else.
    """
    try:
        if (size := path.stat().st_size) > MAX_CONFIG_BYTES:
            raise BuildError(f"{path} has {size} bytes; such a file has a few hundred")
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BuildError(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise BuildError(f"{path} should hold a JSON object")
    return found


def _layers(path: Path, value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    numbers: list[Any] = value if isinstance(value, list) else [value]
    if not numbers or not all(_is_whole(number) and number >= 0 for number in numbers):
        raise _refused(path, "layers_to_transform", value, "null, or numbers of layers from 0")
    return tuple(numbers)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _refused(path: Path, name: str, value: object, wanted: str) -> BuildError:
    shown = json.dumps(value)
    return BuildError(f"{path}: {name} should be {wanted}, not {shown if len(shown) < 80 else shown[:80] + '…'}")
