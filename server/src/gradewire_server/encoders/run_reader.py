"""From a run's jobs to what the model is asked for, and from what it gives to blobs; whoever runs it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.result import Failure, Status
from gradewire_server.encoders.backend import Encoded
from gradewire_server.encoders.telemetry import ModelTelemetry
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.encoders.waiting_calls import PendingText
from gradewire_server.storage.codec import encode_blobs, round_vectors
from gradewire_server.storage.token_codec import encode_tokens
from gradewire_server.storage.vector_kind import SENTENCE, WORDS, Blobs

_NOT_FINITE: Final = Failure(Status.INTERNAL, "the encoder answered with a vector that is zero or not finite")


@dataclass(frozen=True, slots=True)
class RunOutput:
    """Vectors of one run.

    Attributes:
        sentences: float32[n, dims], of unit length; of a grader its logits, [n, 1].
        tokens: float32[n, padded tokens, dims] by layer, 1 for the first, of those that were asked for; rows of padding
            are unspecified.
    """

    sentences: NDArray[np.float32]
    tokens: Mapping[int, NDArray[np.float32]]


class RunReader:
    """Reads the runs of one model; in any thread.

    Args:
        tokenizer: The model's.
        layers: Whose token vectors the model gives.
        telemetry: Where runs are counted.
    """

    def __init__(self, tokenizer: TextTokenizer, layers: Sequence[int], telemetry: ModelTelemetry) -> None:
        self._tokenizer = tokenizer
        self._layers = layers
        self._telemetry = telemetry

    def layers_for(self, texts: Sequence[PendingText]) -> list[int]:
        """Takes the texts of a run; layers whose token vectors it has to give, ascending."""
        return sorted({kind or self._layers[-1] for text in texts for kind in text.take()})

    def read(self, texts: Sequence[PendingText], output: RunOutput, started_s: float) -> list[Encoded]:
        """Makes blobs of a run's output.

        Args:
            texts: Taken, in the order of the output's rows.
            output: What the run gave.
            started_s: When the run began, in `time.perf_counter()` seconds.
        """
        blobs = self.make_blobs(texts, output)
        rows = token_ids(texts)
        padded_tokens = len(rows) * max(map(len, rows))
        duration_s = time.perf_counter() - started_s
        began_s = time.monotonic() - duration_s
        self._telemetry.ran(texts, padded_tokens=padded_tokens, began_s=began_s, duration_s=duration_s)
        return [Encoded(each, began_s=began_s) for each in blobs]

    def make_blobs(self, texts: Sequence[PendingText], output: RunOutput) -> list[Blobs | Failure]:
        """Blobs of each text, or why there are none; arguments as of `read`."""
        tokenized = [text.tokens for text in texts if text.tokens is not None]
        rounded, good = round_vectors(output.sentences)
        truncated = np.array([tokens.truncated for tokens in tokenized], np.bool_)
        return [
            self._blobs(text, row, blob, output) if good[row] else _NOT_FINITE
            for row, (text, blob) in enumerate(zip(texts, encode_blobs(rounded, truncated), strict=True))
        ]

    def _blobs(self, text: PendingText, row: int, sentence: bytes, output: RunOutput) -> Blobs | Failure:
        blobs = {SENTENCE: sentence}
        for kind in text.taken or ():
            assert text.tokens is not None  # noqa: S101 - for mypy: it was tokenized before it was taken
            rows = self._tokenizer.rows(text.tokens, special=kind != WORDS)
            vectors = output.tokens[kind or self._layers[-1]][row, rows.positions]
            blob = encode_tokens(sentence, vectors, rows.offsets, rows.ids)
            if blob is None:
                return _NOT_FINITE
            blobs[kind] = blob
        return blobs


def token_ids(texts: Sequence[PendingText]) -> list[NDArray[np.int32]]:
    """Ids of tokenized texts, in order: a row for each, or for each of its pieces."""
    return [row for text in texts if text.tokens is not None for row in text.tokens.rows]
