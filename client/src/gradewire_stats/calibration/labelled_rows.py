"""Labelled rows as fits see them: split by question, with features and sources."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from gradewire_stats.agreement.rows import RIGHT_FROM

Half = Literal["a", "b"]

_NO_WORD = re.compile(r"[\W_]+")


def question_key(question: str) -> str:
    """The question as it is compared: NFKC, case-folded, its words parted by one blank; "" where it has none.

    Two questions with the same key are the same question: "Who wrote Hamlet?" and "who  wrote hamlet".
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", question).casefold())
    return _NO_WORD.sub(" ", folded).strip()


def question_keys(questions: Sequence[str]) -> list[str]:
    """Return the key of each row's question; a blank question is one of its own."""
    return [question_key(question) or f"\0{row}" for row, question in enumerate(questions)]


def half_of(question: str) -> Half:
    """The split that a question belongs to: "a", the fit split, or "b", the held-out split.

    The parity of the first byte of BLAKE2b over `question_key` in UTF-8: even is "a".
    """
    return "b" if blake2b(question_key(question).encode("utf-8"), digest_size=8).digest()[0] % 2 else "a"


FOLDS: Final = 8
LEAST_OF_A_CLASS: Final = 40
"""Right and wrong rows without which nothing is fitted: fewer say nothing about a probability."""


@dataclass(frozen=True, slots=True)
class FittedFeature:
    """A column of what was fitted.

    Attributes:
        name: As in the metric.
        monotone: 1: more of it never lowers the probability; -1: never raises it; 0: either.
        width: Of the ramps at its splits, in its own unit; 0: hard splits.
        rules_out: Whether from 1 on a rule calls the answer wrong.
    """

    name: str
    monotone: int
    width: float
    rules_out: bool = False


@dataclass(frozen=True, slots=True)
class InputKinds:
    """What kind of item each row is.

    Attributes:
        names: Of the numbers, as the metric has them.
        values: float64[rows, numbers], finite.
    """

    names: Sequence[str]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelledFeatures:
    """Checked rows.

    Attributes:
        features: Columns of `values`.
        values: float64[rows, features], NaN where a feature does not apply.
        right: bool[rows].
        keys: Of the rows' questions; rows of one question are never on both sides of a fold.
        sources: Where each row comes from; every source counts the same.
        shapes: What kind of item each row is; None where that is not known.
        counting: How much a source counts; those that are not named count 1.
    """

    features: Sequence[FittedFeature]
    values: NDArray[np.float64]
    right: NDArray[np.bool_]
    keys: Sequence[str]
    sources: Sequence[str]
    shapes: InputKinds | None
    counting: Mapping[str, float] = field(default_factory=dict)

    @property
    def weights(self) -> NDArray[np.float64]:
        """float64[rows], whose sum is the same for every source that counts 1, and whose mean is 1."""
        rows = Counter(self.sources)
        found = np.array([self.counting.get(source, 1.0) / rows[source] for source in self.sources])
        weights: NDArray[np.float64] = found / found.mean()
        return weights

    @property
    def rules(self) -> NDArray[np.float64]:
        """float64[rows, rules], the features that rule answers out from 1 on."""
        return self.values[:, [feature.rules_out for feature in self.features]]

    def where(self, kept: NDArray[np.bool_]) -> "LabelledFeatures":
        """The rows of a mask."""
        chosen = np.flatnonzero(kept).tolist()
        return LabelledFeatures(
            self.features,
            self.values[kept],
            self.right[kept],
            [self.keys[row] for row in chosen],
            [self.sources[row] for row in chosen],
            None if self.shapes is None else InputKinds(self.shapes.names, self.shapes.values[kept]),
            self.counting,
        )

    def without_shared_questions(self, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[rows], those whose question no row `inside` has."""
        asked = {key for key, held in zip(self.keys, inside, strict=True) if held}
        return np.array([key not in asked for key in self.keys])

    def of_source(self, source: str) -> NDArray[np.bool_]:
        """bool[rows], whose source it is."""
        return np.array([each == source for each in self.sources])


def left_out_sources(rows: LabelledFeatures) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Each source in alphabetical order, with bool[rows] of its rows; none where there is only one."""
    named = sorted(set(rows.sources))
    for source in named if len(named) > 1 else ():
        yield source, rows.of_source(source)


def checked(  # noqa: PLR0913 - what is known of rows, column by column
    features: Sequence[FittedFeature],
    values: NDArray[np.float64],
    labels: NDArray[np.float64],
    questions: Sequence[str],
    *,
    sources: Sequence[str] | None = None,
    shapes: InputKinds | None = None,
) -> LabelledFeatures:
    """The rows, where something can be fitted to them.

    Args:
        features: The metric's, in its order.
        values: float64[rows, features], NaN where a feature does not apply.
        labels: float64[rows], 0 to 1, right from 0.5.
        questions: Of each row, as written; rows of one question are never on both sides of a fold. A row without a
            question is a question of its own.
        sources: Where each row comes from; None: all are of one source.
        shapes: What kind of item each row is, by which a fit tells how unlike another item is. None: it does not.

    Raises:
        ValueError: Labels outside [0, 1], too few right or wrong rows or questions, or values that are infinite.
    """
    sources = sources if sources is not None else [""] * len(values)
    if not len(labels) == len(questions) == len(sources) == len(values):
        raise ValueError(f"there are {len(values)} rows, {len(labels)} labels and {len(questions)} questions")
    if not ((labels >= 0) & (labels <= 1)).all():
        raise ValueError("labels must be numbers from 0 to 1")
    if np.isinf(values).any() or (shapes is not None and not np.isfinite(shapes.values).all()):
        raise ValueError("a feature is infinite")
    right = labels >= RIGHT_FROM
    for kind, count in (("right", int(right.sum())), ("wrong", int((~right).sum()))):
        if count < LEAST_OF_A_CLASS:
            raise ValueError(f"{count} answers are {kind}; a fit needs {LEAST_OF_A_CLASS} right and as many wrong ones")
    keys = question_keys(questions)
    folds = folds_of_keys(keys)
    for fold in range(FOLDS):
        outside = right[folds != fold]
        if not outside.any() or outside.all():
            raise ValueError(f"the rows have too few questions to hold {FOLDS} parts of them out")
    return LabelledFeatures(features, values, right, keys, sources, shapes)


def folds_of_keys(keys: Sequence[str], count: int = FOLDS) -> NDArray[np.intp]:
    """Return the fold of each row, from 0 to below `count`: questions in the order of a hash, dealt out one by one.

    Not the hash alone: its folds of a few questions could be empty.
    """
    dealt = {
        key: number % count
        for number, key in enumerate(sorted(set(keys), key=lambda key: (blake2b(key.encode()).digest(), key)))
    }
    return np.array([dealt[key] for key in keys], dtype=np.intp)
