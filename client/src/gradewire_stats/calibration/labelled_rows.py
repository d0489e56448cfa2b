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
    """Return the canonical form of a question: NFKC, case-folded, words separated by one blank; "" without words.

    Questions with the same key are the same: "Who wrote Hamlet?" and "who  wrote hamlet".
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", question).casefold())
    return _NO_WORD.sub(" ", folded).strip()


def question_keys(questions: Sequence[str]) -> list[str]:
    """Return the key of each row's question; a blank question gets a unique key."""
    return [question_key(question) or f"\0{row}" for row, question in enumerate(questions)]


def half_of(question: str) -> Half:
    """Return the split of a question: "a", the fit split, or "b", the held-out split.

    The split is the parity of the first byte of BLAKE2b over `question_key` in UTF-8: even is "a".
    """
    return "b" if blake2b(question_key(question).encode("utf-8"), digest_size=8).digest()[0] % 2 else "a"


FOLDS: Final = 8
LEAST_OF_A_CLASS: Final = 40
"""Minimum number of right and of wrong rows for a fit of probabilities."""


@dataclass(frozen=True, slots=True)
class FittedFeature:
    """A column of a fit.

    Attributes:
        name: Name in the metric.
        monotone: 1: a higher value never lowers the probability; -1: never raises it; 0: either.
        width: Width of the ramps at its splits, in its own unit; 0: hard splits.
        rules_out: If True, a value of 1 or more calls the answer wrong.
    """

    name: str
    monotone: int
    width: float
    rules_out: bool = False


@dataclass(frozen=True, slots=True)
class InputKinds:
    """Properties of rows that describe the kind of item.

    Attributes:
        names: Names of the numbers, as in the metric.
        values: float64[rows, numbers], finite.
    """

    names: Sequence[str]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelledFeatures:
    """Checked rows.

    Attributes:
        features: Columns of `values`.
        values: float64[rows, features], NaN if a feature does not apply.
        right: bool[rows].
        keys: Keys of the rows' questions; all rows of a question are in the same fold.
        sources: Source of each row; every source counts the same.
        shapes: Kind of item of each row; None if unknown.
        counting: Weight of a source; unnamed ones have weight 1.
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
        """float64[rows] with mean 1, and with the same sum for every source of weight 1."""
        rows = Counter(self.sources)
        found = np.array([self.counting.get(source, 1.0) / rows[source] for source in self.sources])
        weights: NDArray[np.float64] = found / found.mean()
        return weights

    @property
    def rules(self) -> NDArray[np.float64]:
        """float64[rows, rules], the features that rule out answers from 1 on."""
        return self.values[:, [feature.rules_out for feature in self.features]]

    def where(self, kept: NDArray[np.bool_]) -> "LabelledFeatures":
        """Return the rows of a mask."""
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
        """Return bool[rows], True for rows whose question no row `inside` has."""
        asked = {key for key, held in zip(self.keys, inside, strict=True) if held}
        return np.array([key not in asked for key in self.keys])

    def of_source(self, source: str) -> NDArray[np.bool_]:
        """Return bool[rows], True for rows of the source."""
        return np.array([each == source for each in self.sources])


def left_out_sources(rows: LabelledFeatures) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield each source in alphabetical order, with bool[rows] of its rows; nothing if there is only one."""
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
    """Return the rows, checked to be enough for a fit.

    Args:
        features: The metric's features, in its order.
        values: float64[rows, features], NaN if a feature does not apply.
        labels: float64[rows], 0 to 1, right from 0.5.
        questions: Question of each row, as written; all rows of a question are in the same fold. A blank one is unique.
        sources: Source of each row; None: one source for all.
        shapes: Kind of item of each row, for a fit that measures how unlike other items are. None: it does not.

    Raises:
        ValueError: Labels outside [0, 1], too few right or wrong rows or questions, or infinite values.
    """
    sources = sources if sources is not None else [""] * len(values)
    if not len(labels) == len(questions) == len(sources) == len(values):
        raise ValueError(f"{len(values)} rows, {len(labels)} labels and {len(questions)} questions differ in number")
    if not ((labels >= 0) & (labels <= 1)).all():
        raise ValueError("labels must be numbers from 0 to 1")
    if np.isinf(values).any() or (shapes is not None and not np.isfinite(shapes.values).all()):
        raise ValueError("a feature is infinite: leave such rows out")
    right = labels >= RIGHT_FROM
    for kind, count in (("right", int(right.sum())), ("wrong", int((~right).sum()))):
        if count < LEAST_OF_A_CLASS:
            raise ValueError(
                f"only {count} answers are {kind}: label at least {LEAST_OF_A_CLASS} right and as many wrong ones"
            )
    keys = question_keys(questions)
    folds = folds_of_keys(keys)
    for fold in range(FOLDS):
        outside = right[folds != fold]
        if not outside.any() or outside.all():
            raise ValueError(f"too few questions to hold out {FOLDS} parts of the rows: label rows of more questions")
    return LabelledFeatures(features, values, right, keys, sources, shapes)


def folds_of_keys(keys: Sequence[str], count: int = FOLDS) -> NDArray[np.intp]:
    """Return the fold of each row, 0 to `count` - 1: questions in the order of a hash, dealt out in turn.

    Dealing avoids the empty folds that a hash alone could give with few questions.
    """
    dealt = {
        key: number % count
        for number, key in enumerate(sorted(set(keys), key=lambda key: (blake2b(key.encode()).digest(), key)))
    }
    return np.array([dealt[key] for key in keys], dtype=np.intp)
