"""An encoder that reads so many tokens of a text, behind a metric's program: what of a long answer was it given?"""

from typing import Any

import numpy as np
from tests.support.engines.hash_engine import DIMS, token_vectors

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import Embed, EmbedTokens, Tier, Vectors

READ = 20


def numbered(count: int) -> str:
    """So many different words."""
    return " ".join(f"w{number}" for number in range(count))


class LimitedEncoder:
    """Reads `limit` tokens of a text; a token's vector does not depend on its neighbours.

    Attributes:
        pieces: Texts that were asked for by their tokens.
        windows: Windows that were embedded alone.
        most_at_once: Most texts of a round that were asked for by their tokens.
    """

    def __init__(self, limit: int = READ, fails_after: int = 1_000_000) -> None:
        self.limit = limit
        self.fails_after = fails_after
        self.pieces: list[str] = []
        self.windows: list[str] = []
        self.most_at_once = 0

    def run(self, program: Any) -> Any:
        """Drives `program` to its end and returns its result."""
        answers: Any = None
        try:
            while True:
                needs = program.send(answers)
                tokens = [text for need in needs if isinstance(need, EmbedTokens) for text in need.texts]
                self.pieces += tokens
                self.most_at_once = max(self.most_at_once, len(tokens))
                answers = tuple(map(self._answer, needs))
        except StopIteration as stop:
            return stop.value

    def _answer(self, need: Any) -> Any:
        if len(self.pieces) > self.fails_after:
            return Failure(Status.TIMEOUT, "late")
        found = [token_vectors(text, self.limit) for text in need.texts]
        if isinstance(need, EmbedTokens):
            return tuple(found)
        assert isinstance(need, Embed)
        if need.tier is Tier.WINDOW:
            self.windows += need.texts
        sentences = np.array([each.sentence for each in found], dtype=np.float32)
        return Vectors(sentences.reshape(len(found), DIMS), np.array([each.truncated for each in found], np.bool_))
