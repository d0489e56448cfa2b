"""Labelled rows for fits: split by question, with features and sources."""

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
    """Return a question's words in NFKC, case-folded and separated by single blanks, or "" if there are no words.

    Questions with the same key count as the same question, for example "Who wrote Hamlet?" and "who  wrote hamlet".
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", question).casefold())
    return _NO_WORD.sub(" ", folded).strip()


def question_keys(questions: Sequence[str]) -> list[str]:
    """Return each row's question key. Blank questions get unique keys."""
    return [question_key(question) or f"\0{row}" for row, question in enumerate(questions)]


def half_of(question: str) -> Half:
    """Return a question's half: "a" for fitting, or "b" for testing.

    The half is "a" if the first byte of the BLAKE2b digest of `question_key` in UTF-8 is even.
    """
    return "b" if blake2b(question_key(question).encode("utf-8"), digest_size=8).digest()[0] % 2 else "a"


FOLDS: Final = 8
LEAST_OF_A_CLASS: Final = 40
"""Minimum number of right rows, and of wrong rows, for fitting probabilities."""


@dataclass(frozen=True, slots=True)
class FittedFeature:
    """A column of a fit.

    Attributes:
        monotone: 1 if a higher value never lowers the probability, -1 if a higher value never raises the probability,
            or 0 without a constraint.
        width: Width of the linear transition at a split, in the feature's unit. 0 means hard splits.
        rules_out: If True, a value of 1 or more makes the answer wrong.
        doubts: If True, a value of 1 or more makes the verdict "right" uncertain.
    """

    name: str
    monotone: int
    width: float
    rules_out: bool = False
    doubts: bool = False


@dataclass(frozen=True, slots=True)
class InputKinds:
    """Numbers that describe each item's type. The distance between two items follows from these numbers.

    Attributes:
        values: float64[rows, numbers], finite.
    """

    names: Sequence[str]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelledFeatures:
    """Labelled rows that passed the checks in `checked`.

    Attributes:
        features: Columns of `values`.
        values: float64[rows, features], NaN if a feature does not apply.
        right: bool[rows], human labels.
        keys: Each row's question key. Rows with the same key are in the same fold.
        sources: Each row's source. Every source has the same total weight.
        shapes: Each row's type of item, or None if unknown.
        counting: Weight by source. A source that is not listed has the weight 1.
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
        """float64[rows] with mean 1. The sum over each source's rows is proportional to the source's weight."""
        rows = Counter(self.sources)
        found = np.array([self.counting.get(source, 1.0) / rows[source] for source in self.sources])
        weights: NDArray[np.float64] = found / found.mean()
        return weights

    @property
    def rules(self) -> NDArray[np.float64]:
        """float64[rows, rules], the columns of the features whose `rules_out` is True."""
        return self.values[:, [feature.rules_out for feature in self.features]]

    @property
    def doubts(self) -> NDArray[np.bool_]:
        """bool[rows], True if the verdict "right" would be uncertain, whatever its probability."""
        columns = [feature.doubts for feature in self.features]
        return np.asarray((self.values[:, columns] >= 1).any(axis=1), dtype=np.bool_)

    def where(self, kept: NDArray[np.bool_]) -> "LabelledFeatures":
        """Return the rows that a mask, bool[rows], selects."""
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
        """Return bool[rows], True for each row whose question occurs in no row of the mask `inside`."""
        asked = {key for key, held in zip(self.keys, inside, strict=True) if held}
        return np.array([key not in asked for key in self.keys])

    def of_source(self, source: str) -> NDArray[np.bool_]:
        """Return bool[rows], True for rows from this source."""
        return np.array([each == source for each in self.sources])


def left_out_sources(rows: LabelledFeatures) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield each source and the mask of the source's rows, in alphabetical order; yield nothing for a single source."""
    named = sorted(set(rows.sources))
    for source in named if len(named) > 1 else ():
        yield source, rows.of_source(source)


def checked(  # noqa: PLR0913 - one argument per column
    features: Sequence[FittedFeature],
    values: NDArray[np.float64],
    labels: NDArray[np.float64],
    questions: Sequence[str],
    *,
    sources: Sequence[str] | None = None,
    shapes: InputKinds | None = None,
) -> LabelledFeatures:
    """Check that the columns are sufficient for a fit, and return them as labelled rows.

    Args:
        features: The metric's features in order.
        values: float64[rows, features], NaN if a feature does not apply.
        labels: float64[rows], 0 to 1. 0.5 or more is right.
        questions: Text of each row's question. Rows with the same question are in the same fold. Each blank
            question counts as a question of its own.
        sources: Each row's source. None means a single source.
        shapes: Each row's type of item, or None for a fit without distances between items.

    Raises:
        ValueError: A label lies outside [0, 1], a value is infinite, or there are too few questions, right rows or
            wrong rows.
    """
    sources = sources if sources is not None else [""] * len(values)
    if not len(labels) == len(questions) == len(sources) == len(values):
        raise ValueError(f"{len(values)} rows, {len(labels)} labels and {len(questions)} questions differ in number")
    if not ((labels >= 0) & (labels <= 1)).all():
        raise ValueError("labels must be numbers from 0 to 1")
    if np.isinf(values).any() or (shapes is not None and not np.isfinite(shapes.values).all()):
        raise ValueError("a feature is infinite. Leave such rows out")
    right = labels >= RIGHT_FROM
    for kind, count in (("right", int(right.sum())), ("wrong", int((~right).sum()))):
        if count < LEAST_OF_A_CLASS:
            raise ValueError(
                f"only {count} answers are {kind}. Label at least {LEAST_OF_A_CLASS} right and as many wrong answers"
            )
    keys = question_keys(questions)
    folds = folds_of_keys(keys)
    for fold in range(FOLDS):
        outside = right[folds != fold]
        if not outside.any() or outside.all():
            raise ValueError(f"too few questions to hold out {FOLDS} parts of rows. Label answers to more questions")
    return LabelledFeatures(features, values, right, keys, sources, shapes)


def folds_of_keys(keys: Sequence[str], count: int = FOLDS) -> NDArray[np.intp]:
    """Return each row's fold, 0 to `count` - 1. Questions are sorted by a hash and assigned to folds in turn."""
    dealt = {
        key: number % count
        for number, key in enumerate(sorted(set(keys), key=lambda key: (blake2b(key.encode()).digest(), key)))
    }
    return np.array([dealt[key] for key in keys], dtype=np.intp)
