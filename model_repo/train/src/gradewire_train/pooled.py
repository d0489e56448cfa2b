"""An encoder with pooling and normalisation in torch, through which gradients flow."""

from typing import Any

import torch

from gradewire_models.export.encoder import padding_id
from gradewire_models.export.modules import Pooling

_TINY = 1e-12


class PooledEncoder(torch.nn.Module):  # type: ignore[misc]  # torch is not there where types are checked
    """Gives the sentence vectors that an exported graph gives.

    Args:
        model: As transformers loads it.
        pooling: How token vectors become a sentence vector.
    """

    def __init__(self, model: Any, pooling: Pooling) -> None:
        super().__init__()
        self.model = model
        self.pooling = pooling

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        """Encodes a batch.

        Args:
            input_ids: int64 [batch, tokens]; what stands where the mask is 0 is never looked at.
            attention_mask: int64 [batch, tokens]; 1 on a text's tokens, then 0.

        Returns:
            float32 [batch, dims] of unit length.
        """
        # Some architectures (RoBERTa) find padding by its id and not by the mask, so it gets that id here.
        ids = torch.where(attention_mask > 0, input_ids, torch.full_like(input_ids, padding_id(self.model)))
        found = self.model(input_ids=ids, attention_mask=attention_mask)
        pooled = (
            found.pooler_output if self.pooling == "pooler" else self._pool(found.last_hidden_state, attention_mask)
        )
        length = torch.linalg.vector_norm(pooled, dim=-1, keepdim=True)
        return pooled / length.clamp(min=_TINY)

    def _pool(self, rows: Any, mask: Any) -> Any:
        if self.pooling == "cls":
            return rows[:, 0]
        if self.pooling == "last":
            last = (mask.sum(dim=1) - 1).clamp(min=0)
            return rows.gather(1, last[:, None, None].expand(-1, 1, rows.shape[2])).squeeze(1)
        # A sum is as good as a mean here: the length is divided out next.
        return (rows * mask.unsqueeze(-1).to(rows.dtype)).sum(dim=1)
