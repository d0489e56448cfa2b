"""What a graph is given of texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def padded_inputs(ids: Sequence[NDArray[np.int32]]) -> dict[str, Any]:
    """The graph's inputs, int64[texts, longest], of token ids of each text, at least one."""
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    mask = np.arange(lengths.max()) < lengths[:, None]
    padded = np.zeros(mask.shape, np.int64)  # what stands under a zero of the mask is never read
    padded[mask] = np.concatenate(ids)
    return {"input_ids": padded, "attention_mask": mask.astype(np.int64)}
