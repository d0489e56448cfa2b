"""Loads an encoder with transformers, and wraps it in what the graph is to compute: pooling and normalisation."""

from collections.abc import Sequence
from typing import Any

import torch
import transformers

from gradewire_models.errors import ExportError
from gradewire_models.export.folder import EncoderFolder
from gradewire_models.export.modules import Pooling

_TINY = 1e-12
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


class PooledEncoder(torch.nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """What the graph computes.

    Args:
        model: As `load_encoder` gave it.
        pooling: How token vectors become a sentence vector.
        token_layers: Earlier layers (1 is the first) whose token vectors are returned as well.
    """

    def __init__(self, model: Any, pooling: Pooling, token_layers: Sequence[int]) -> None:
        super().__init__()
        self.model = model
        self.pooling = pooling
        self.token_layers = tuple(token_layers)

    def forward(self, input_ids: Any, attention_mask: Any) -> tuple[Any, ...]:
        """Encodes a batch.

        Args:
            input_ids: int64 [batch, tokens]; what stands where the mask is 0 is never looked at.
            attention_mask: int64 [batch, tokens]; 1 on a text's tokens, then 0.

        Returns:
            float32 [batch, dims] of unit length; float32 [batch, tokens, dims] of the last layer; the same of each of
            `token_layers`.
        """
        # Some architectures (RoBERTa) find padding by its id and not by the mask, so it gets that id here.
        ids = torch.where(attention_mask > 0, input_ids, torch.full_like(input_ids, _padding_id(self.model)))
        found = self.model(input_ids=ids, attention_mask=attention_mask, output_hidden_states=bool(self.token_layers))
        rows = found.last_hidden_state
        sentence = found.pooler_output if self.pooling == "pooler" else _pool(rows, attention_mask, self.pooling)
        length = torch.linalg.vector_norm(sentence, dim=-1, keepdim=True)
        earlier = tuple(found.hidden_states[layer] for layer in self.token_layers)
        return (sentence / length.clamp(min=_TINY), rows, *earlier)


def _pool(rows: Any, mask: Any, pooling: Pooling) -> Any:
    if pooling == "cls":
        return rows[:, 0]
    if pooling == "last":
        last = (mask.sum(dim=1) - 1).clamp(min=0)
        return rows.gather(1, last[:, None, None].expand(-1, 1, rows.shape[2])).squeeze(1)
    # A sum is as good as a mean here: the length is divided out next.
    return (rows * mask.unsqueeze(-1).to(rows.dtype)).sum(dim=1)


def _padding_id(model: Any) -> int:
    padding = model.config.pad_token_id
    return 0 if padding is None or padding < 0 else int(padding)


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).strip().splitlines()[:3])
