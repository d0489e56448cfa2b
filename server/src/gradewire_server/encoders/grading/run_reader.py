"""From a grader's run to blobs: the highest logit over the pieces of each answer."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from typing_extensions import override

from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.run_reader import RunOutput, RunReader
from gradewire_server.encoders.waiting_calls import PendingText
from gradewire_server.storage.logit_codec import encode_logit
from gradewire_server.storage.vector_kind import SENTENCE, Blobs

_NOT_FINITE: Final = Failure(Status.INTERNAL, "the grader answered with a logit that is not finite")


class GraderRunReader(RunReader):
    """Reads the runs of one grader; in any thread."""

    @override
    def make_blobs(self, texts: Sequence[PendingText], output: RunOutput) -> list[Blobs | Failure]:
        logits = output.sentences[:, 0]
        made: list[Blobs | Failure] = []
        row = 0
        for text in texts:
            assert text.tokens is not None  # noqa: S101 - for mypy: it was tokenized before it was taken
            pieces = len(text.tokens.ends)
            logit = float(logits[row : row + pieces].max())
            row += pieces
            blob = encode_logit(logit, truncated=text.tokens.truncated, pieces=pieces)
            made.append({SENTENCE: blob} if np.isfinite(logit) else _NOT_FINITE)
        return made
