"""Compares two built encoders of the same weights on real texts: how far their vectors differ, and what they cost.

`python -m benchmarks.research.compare_encoders NAME OTHER [--repository DIRECTORY] [--other-repository DIRECTORY]`, for
instance a model of the catalog and the same checkpoint by `gradewire models export`. Texts are EVOUNA's answers and
references, in batches of unequal lengths as they come. Both take turns within every round, with one thread each.
"""

import argparse
import os
import random
import statistics
import time
from pathlib import Path

import numpy as np
from benchmarks.common.rows import DEFAULT_DATA, read_rows
from benchmarks.common.sessions import open_session, padded
from numpy.typing import NDArray
from tokenizers import Tokenizer

from gradewire_models.repository.built import BuiltModel, default_repository, load_built

TEXTS = 240
BATCH_TEXTS = 16
ROUNDS = 3

Vectors = NDArray[np.float32]


class Encoder:
    """A built model with one thread."""

    def __init__(self, model: BuiltModel) -> None:
        self._session = open_session(model.onnx_path, threads=1)
        self._tokenizer = Tokenizer.from_file(str(model.tokenizer_path))
        self._prefix = model.prefix

    def tokenize(self, texts: list[str]) -> list[list[int]]:
        """Token ids of each text."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch([self._prefix + text for text in texts])]

    def encode(self, batch: list[list[int]]) -> Vectors:
        """Sentence vectors of one batch, float32 [texts, dims]."""
        found: Vectors = self._session.run(["sentence_embedding"], padded(batch))[0]
        return found


def draw_texts(data: Path) -> list[str]:
    """Distinct answers and references, short ones and long ones, the same ones every time."""
    texts = {text for row in read_rows(data) for text in (row["prediction"], *row["references"])}
    return random.Random(1).sample(sorted(texts), TEXTS)  # noqa: S311 - a sample, not a secret


def main() -> None:
    """Prints the differences and the ratio of the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs=2)
    parser.add_argument("--repository", type=Path, default=default_repository())
    parser.add_argument("--other-repository", type=Path, default=default_repository())
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    arguments = parser.parse_args()
    texts = draw_texts(arguments.data)
    repositories = (arguments.repository, arguments.other_repository)
    encoders = [Encoder(load_built(*built)) for built in zip(repositories, arguments.names, strict=True)]

    one, other = (encoder.tokenize(texts) for encoder in encoders)
    print(f"{len(texts)} texts of {min(map(len, one))} to {max(map(len, one))} tokens; same token ids: {one == other}")
    for order, ids in (("as they come", one), ("sorted by length", sorted(one, key=len))):
        batches = [ids[start : start + BATCH_TEXTS] for start in range(0, len(ids), BATCH_TEXTS)]
        times: tuple[list[float], list[float]] = ([], [])
        vectors: list[Vectors] = []
        for _ in range(ROUNDS):
            vectors = []
            for encoder, seconds in zip(encoders, times, strict=True):
                start = time.perf_counter()
                vectors.append(np.concatenate([encoder.encode(batch) for batch in batches]))
                seconds.append(time.perf_counter() - start)
        ratios = [there / here for here, there in zip(*times, strict=True)]
        difference = np.max(np.abs(vectors[0] - vectors[1]))
        print(
            f"batches of {BATCH_TEXTS} {order}: largest difference {difference:.1e}, of a cosine from 1 "
            f"{_cosine_error(*vectors):.0e}; time of the second over the first {statistics.median(ratios):.2f} "
            f"(median of {ROUNDS} rounds, {min(ratios):.2f} to {max(ratios):.2f}); load {os.getloadavg()[0]:.1f}"
        )


def _cosine_error(one: Vectors, other: Vectors) -> float:
    here, there = one.astype(np.float64), other.astype(np.float64)
    lengths = np.linalg.norm(here, axis=1) * np.linalg.norm(there, axis=1)
    return float(np.max(1 - np.sum(here * there, axis=1) / lengths))


if __name__ == "__main__":
    main()
