"""Measure how training changes an encoder's similarities for general texts instead of short answers.

`python -m benchmarks.agreement.general_similarity --model all-MiniLM-L6-v2 --model sfve-mini [--words
gensim-4.4.0-….whl]` prints each model's Spearman correlation of cosines with grades, and its difference from the first
model, with 95 % intervals by bootstrap over groups.

- `sentences`: 150 pairs in general_similarity.tsv, written for this benchmark: 25 sentences, each with six others.
  Grades: 5 for the same in different words, 4 for one more or one less detail, 3 for the same scene with an important
  change, 2 for the same subject in a different event, 1 for only a shared word or thing, 0 for nothing in common.
  Groups are the 25 sentences.
- `wordsim353`, `simlex999`: public word pairs graded by annotators (Finkelstein et al. 2002, relatedness; Hill et al.
  2015, similarity), from the tests in gensim's wheel (`pip download --no-deps gensim==4.4.0`). No package has a set of
  sentence similarities. Groups are the pairs.

`similarity_sets` and `correlation` accept any `encode(texts) -> vectors`, so a training program can use them after each
step.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradewire_models.repository.built import default_repository, load_built
from gradewire_stats.agreement.ranks import Ordering, spearman
from gradewire_stats.bootstrap import draws, interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Encode = Callable[[Sequence[str]], NDArray[np.floating]]

OWN_PAIRS = Path(__file__).with_suffix(".tsv")
RESAMPLES = 5000
SEED = 20261122
WORD_FILES = {
    "wordsim353": (
        "gensim/test/test_data/wordsim353.tsv",
        "f92a022fc2537793a15bc3a8c162ebcd74990e033a228bb6388cb71e4c0b1e1d",
    ),
    "simlex999": (
        "gensim/test/test_data/simlex999.txt",
        "d5e0501971478a511430ee880bd0121e94ac701ba86d90544d83e6d2ba3db05d",
    ),
}


@dataclass(frozen=True)
class SimilaritySet:
    """Pairs of texts with annotators' similarity grades.

    Attributes:
        grades: float64 [pairs]; a higher grade means more similar.
        groups: int [pairs], each pair's group, counted from 0 without gaps.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    grades: NDArray[np.float64]
    groups: NDArray[np.intp]


def similarity_sets(words: Path | None = None) -> list[SimilaritySet]:
    """Return the project's sentences and, from gensim's wheel `words`, both sets of word pairs.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file has the wrong format or digest.
    """
    sets = [read_sentences(OWN_PAIRS)]
    if words is not None:
        sets += [read_words(words, name) for name in WORD_FILES]
    return sets


def read_sentences(path: Path) -> SimilaritySet:
    """Read the columns group, grade, first and second from a tab-separated file with a header.

    Raises:
        OSError: The file cannot be read.
        ValueError: A line is malformed; the message contains the line number.
    """
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, start=2):
        if not (row["first"] and row["second"] and row["group"].isdecimal() and row["grade"] in set("012345")):
            raise ValueError(f"{path}, line {number}: must have group, grade (0 to 5), first and second, not {row}")
    _, groups = np.unique([int(row["group"]) for row in rows], return_inverse=True)
    return SimilaritySet(
        "sentences",
        tuple(row["first"] for row in rows),
        tuple(row["second"] for row in rows),
        np.array([float(row["grade"]) for row in rows]),
        groups.astype(np.intp),
    )


def read_words(wheel: Path, name: str) -> SimilaritySet:
    """Read one of `WORD_FILES` from gensim's wheel.

    Raises:
        OSError: The wheel cannot be read.
        ValueError: The file differs from the pinned digest.
    """
    member, pinned = WORD_FILES[name]
    try:
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(member)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"{wheel} is not gensim's wheel: {error}") from error
    if (found := hashlib.sha256(content).hexdigest()) != pinned:
        raise ValueError(f"{member} of {wheel} has SHA-256 {found}, not {pinned}. Use gensim 4.4.0")
    lines = (line.split("\t") for line in content.decode("utf-8").splitlines() if line and not line.startswith("#"))
    first, second, grades = zip(*lines, strict=True)
    return SimilaritySet(name, first, second, np.array(grades, dtype=np.float64), np.arange(len(first)))


def cosines(encode: Encode, pairs: SimilaritySet) -> NDArray[np.float64]:
    """Return every pair's cosine, float64 [pairs] in [-1, 1]; `encode` returns [texts, dims]."""
    texts = sorted({*pairs.first, *pairs.second})
    positions = {text: position for position, text in enumerate(texts)}
    vectors = np.asarray(encode(texts), dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = ([positions[text] for text in side] for side in (pairs.first, pairs.second))
    return np.asarray(np.sum(vectors[first] * vectors[second], axis=1))


def correlation(found: NDArray[np.float64], pairs: SimilaritySet) -> float:
    """Return Spearman's rho in [-1, 1] of `found`, float64 [pairs], and the grades, or NaN if `found` is constant."""
    return float(_correlations(np.ones((1, len(found))), found, pairs)[0])


def resampled(found: NDArray[np.float64], pairs: SimilaritySet) -> NDArray[np.float64]:
    """Return `correlation` for `RESAMPLES` draws of whole groups, the same for every model."""
    groups = np.zeros(int(pairs.groups.max()) + 1, dtype=np.intp)
    weights = draws(groups, resamples=RESAMPLES, seed=SEED)
    return np.concatenate([_correlations(each[:, pairs.groups], found, pairs) for each in weights])


def _correlations(
    weights: NDArray[np.float64], found: NDArray[np.float64], pairs: SimilaritySet
) -> NDArray[np.float64]:
    # Without rounding, the last bits would decide the ranks of equal texts' cosines.
    return spearman(weights, Ordering.of(np.round(found, 6)), Ordering.of(pairs.grades))


def report(name: str, encoders: dict[str, Encode], pairs: SimilaritySet) -> list[str]:
    """Return the table's lines, one per model, with the difference from the first model."""
    lines: list[str] = []
    base: tuple[float, NDArray[np.float64]] | None = None
    for model, encode in encoders.items():
        found = cosines(encode, pairs)
        value, drawn = correlation(found, pairs), resampled(found, pairs)
        line = f"| {name} ({len(found)}) | {model} | {_with_interval(value, drawn)} |"
        base = base or (value, drawn)
        lines.append(f"{line} {_with_interval(value - base[0], drawn - base[1]) if lines else ''} |")
    return lines


def _with_interval(value: float, drawn: NDArray[np.float64]) -> str:
    bounds = interval(drawn)
    return f"{value:.3f}" + ("" if bounds is None else f" [{bounds[0]:.3f}, {bounds[1]:.3f}]")


def main() -> None:
    """Print a table with every set and model."""
    # A training program that imports this module may lack onnxruntime.
    from gradewire_models.build.quality import embed_texts

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--model", action="append", required=True, help="built model; the others are compared with the first one"
    )
    parser.add_argument("--words", type=Path, help="gensim's wheel: adds wordsim353 and simlex999")
    parser.add_argument("--repository", type=Path, default=default_repository())
    options = parser.parse_args()
    encoders: dict[str, Encode] = {
        name: partial(embed_texts, load_built(options.repository, name)) for name in options.model
    }
    print("| set (pairs) | model | Spearman | against the first |\n|---|---|---|---|")
    for pairs in similarity_sets(options.words):
        print("\n".join(report(pairs.name, encoders, pairs)))


if __name__ == "__main__":
    main()
