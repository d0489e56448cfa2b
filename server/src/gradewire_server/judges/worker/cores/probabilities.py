"""Turns logits into what a row asks for."""

import numpy as np
from numpy.typing import NDArray

from gradewire_server.judges.worker.cores.core import CoreError
from gradewire_server.judges.worker.messages import Row, RowResult


def read_logits(logits: NDArray[np.float32], row: Row) -> RowResult:
    """What `row` asks for, at temperature 1, in float64.

    Args:
        logits: float32[vocabulary], of the token after the row.
        row: What is wanted.

    Raises:
        CoreError: NaN or infinity among the logits.
    """
    if not np.isfinite(logits).all():
        raise CoreError("the model's logits are not finite")
    next_token = int(logits.argmax()) if row.next_token else -1
    if not row.labels:
        return RowResult(next_token=next_token)
    exact = logits.astype(np.float64)
    labels = exact[list(row.labels)]
    # Each sum from its own largest term: labels far below everything else must not all become 0.
    weights = np.exp(labels - labels.max())
    everything = np.exp(exact - exact.max()).sum()
    mass = weights.sum() / everything * np.exp(labels.max() - exact.max())
    return RowResult(tuple((weights / weights.sum()).tolist()), min(float(mass), 1.0), next_token)
