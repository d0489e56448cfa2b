"""People as one more evaluator: their labels as verdicts."""

from dataclasses import replace

import numpy as np

from gradewire.agreement.point_estimates import right
from gradewire.agreement.rows import JudgedRows

# No metric line begins so.
HUMAN = "\x00human"


def with_human(rows: JudgedRows) -> JudgedRows:
    """Adds a metric `HUMAN` whose verdicts are the labels; it has none where labels leave [0, 1]."""
    positive = right(rows.labels)
    verdicts = np.full(len(rows.labels), np.nan) if positive is None else positive.astype(np.float64)
    return replace(rows, scores={**rows.scores, HUMAN: rows.labels}, verdicts={**rows.verdicts, HUMAN: verdicts})
