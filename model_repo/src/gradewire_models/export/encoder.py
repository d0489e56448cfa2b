"""Loads an encoder with transformers, and wraps it in what gradewire's own exporter traces."""

from collections.abc import Sequence
from typing import Any

import torch
import transformers

from gradewire_models.errors import ExportError
from gradewire_models.export.completed import HIDDEN_STATES
from gradewire_models.export.folder import EncoderFolder

# One file of at most 2 GiB is what ONNX can hold; the graph itself needs little.
_MAX_WEIGHT_BYTES = 2_000_000_000


def load_encoder(folder: EncoderFolder) -> Any:
    """Loads the weights as float32, in evaluation mode, with plain ("eager") attention.

    Code that came with the model is never run, and only safetensors are read.

    Raises:
        ExportError: The architecture is unknown or needs code of its own, weights are missing, or they are more than
            one ONNX file holds.
    """
    # Steps are reported by ours; a bar of its own in between would tear the lines.
    transformers.utils.logging.disable_progress_bar()
    try:
        model, info = transformers.AutoModel.from_pretrained(
            folder.directory,
            attn_implementation="eager",
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    # transformers raises whatever its many parts raise; what they say is the best there is to say.
    except Exception as error:
        raise ExportError(
            f"transformers {transformers.__version__} cannot load {folder.directory} ({folder.model_type}); code that "
            f"comes with a model is never run. It said: {_first_lines(error)}"
        ) from error
    missing = sorted(name for name in info["missing_keys"] if folder.pooling == "pooler" or "pooler" not in name)
    if missing:
        raise ExportError(f"{folder.directory} lacks weights, which would be random: {', '.join(missing[:5])}")
    weight_bytes = sum(4 * parameter.numel() for parameter in model.parameters())
    if weight_bytes > _MAX_WEIGHT_BYTES:
        raise ExportError(
            f"{folder.directory} has {weight_bytes / 1e9:.1f} GB of weights in float32; one ONNX file holds "
            f"{_MAX_WEIGHT_BYTES / 1e9:.0f} GB"
        )
    if model.config.get_text_config() is not model.config:
        raise ExportError(f"{folder.directory} holds a model of more than text ({folder.model_type})")
    if folder.pooling == "pooler" and getattr(model, "pooler", None) is None:
        raise ExportError(f"{folder.model_type} has no pooler: choose another --pooling")
    model.config.use_cache = False
    return model.eval()


def padding_id(model: Any) -> int:
    """The id that a model takes for padding; 0 where it has none."""
    padding = model.config.pad_token_id
    return 0 if padding is None or padding < 0 else int(padding)


class BareEncoder(torch.nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """What gradewire's own exporter traces: the encoder, and the outputs that the rest of the graph needs.

    Args:
        model: As `load_encoder` gave it.
        outputs: Names of outputs, of those that `gradewire_models.export.completed` reads.
    """

    def __init__(self, model: Any, outputs: Sequence[str]) -> None:
        super().__init__()
        self.model = model
        self.outputs = tuple(outputs)

    def forward(self, input_ids: Any, attention_mask: Any) -> tuple[Any, ...]:
        """Encodes a batch.

        Args:
            input_ids: int64 [batch, tokens]; the model's padding id where the mask is 0.
            attention_mask: int64 [batch, tokens]; 1 on a text's tokens, then 0.

        Returns:
            float32 [batch, tokens, dims], or [batch, dims] of the pooler, an output each.
        """
        layers = any(name.startswith(HIDDEN_STATES) for name in self.outputs)
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=layers)
        return tuple(_output(found, name) for name in self.outputs)


def _output(found: Any, name: str) -> Any:
    whole, _, layer = name.partition(".")
    return found[whole][int(layer)] if layer else found[whole]


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).strip().splitlines()[:3])
