"""Runs a metric's program by hand: answers come from a table of vectors, so scores can be worked out on paper."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.support.judges.scripted import Script

from gradewire_server.domain.items import Failure
from gradewire_server.domain.judge import Choose, Generate
from gradewire_server.domain.needs import (
    CorpusStatistics,
    DocumentFrequencies,
    Embed,
    EmbedTokens,
    Need,
    TokenVectors,
    Vectors,
)


def at(degrees: float) -> tuple[float, float]:
    """The unit vector at an angle: the cosine of two texts is the cosine of the angle between them."""
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


def table_of(
    vectors: Mapping[str, tuple[float, float]], truncated: frozenset[str] = frozenset(), judge: Script | None = None
) -> "Table":
    """A table whose texts have as token vectors those of their words, where the table has all of these."""
    tokens = {}
    for text, vector in vectors.items():
        words = list(re.finditer(r"\w+", text))
        if all(word[0] in vectors for word in words):
            tokens[text] = TokenVectors(
                sentence=np.array(vector, dtype=np.float32),
                tokens=np.array([vectors[word[0]] for word in words], dtype=np.float32),
                offsets=np.array([word.span() for word in words], dtype=np.int32),
                ids=np.arange(len(words), dtype=np.int32),
                truncated=text in truncated,
            )
    return Table(vectors, tokens=tokens, truncated=truncated, judge=judge or Script())


@dataclass
class Table:
    """Answers by text; a text that is not in it is a KeyError, so a test names every text that may be asked for.

    Attributes:
        vectors: Text to vector.
        tokens: Text to its token vectors.
        prepared: Reference to stored synthetic answer.
        corpus: Answers every CorpusStatistics.
        truncated: Texts longer than the model reads.
        failure: Answers every need, if set.
        judge: What the judge says.
        rounds: What was asked for, round by round.
    """

    vectors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    tokens: Mapping[str, TokenVectors] = field(default_factory=dict)
    prepared: Mapping[str, str] = field(default_factory=dict)
    corpus: DocumentFrequencies | None = None
    truncated: frozenset[str] = frozenset()
    failure: Failure | None = None
    judge: Script = field(default_factory=Script)
    rounds: list[tuple[Need, ...]] = field(default_factory=list)

    def run(self, program: Any) -> Any:
        """Drives `program` to its end and returns its result."""
        answers: Any = None
        try:
            while True:
                needs = program.send(answers)
                self.rounds.append(needs)
                answers = tuple(map(self._answer, needs))
        except StopIteration as stop:
            return stop.value

    def _answer(self, need: Need) -> Any:
        if self.failure is not None:
            return self.failure
        if isinstance(need, Embed):
            return Vectors(
                np.array([self.vectors[text] for text in need.texts], dtype=np.float32),
                np.array([text in self.truncated for text in need.texts]),
            )
        if isinstance(need, EmbedTokens):
            return tuple(self.tokens[text] for text in need.texts)
        if isinstance(need, CorpusStatistics):
            assert self.corpus is not None, "a corpus was asked for"
            return self.corpus
        if isinstance(need, Choose | Generate):
            return self.judge.choose(need) if isinstance(need, Choose) else self.judge.generate(need)
        return tuple(self.prepared.get(reference) for reference in need.references)

    @property
    def embedded(self) -> list[set[str]]:
        """Texts asked for as sentences, by round."""
        return [{t for need in needs if isinstance(need, Embed) for t in need.texts} for needs in self.rounds]
