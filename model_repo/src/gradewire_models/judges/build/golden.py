"""Golden logits: texts, their token ids and what plain float32 makes of them, kept beside the graph for `verify`."""

from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

TEXTS = (
    "<|im_start|>user\nWhich planet is known for its rings? Answer in one word.<|im_end|>\n<|im_start|>assistant\n",
    (
        "<|im_start|>system\nRate the answer: 1 is wrong, 2 is partly right, 3 is right.<|im_end|>\n<|im_start|>user\n"
        "Question: How many sides does a hexagon have?\nReference: six\nAnswer: It has 6 of them.<|im_end|>\n"
        "<|im_start|>assistant\nRating:"
    ),
    "The capital of France is",
    "Ein Satz auf Deutsch, dann ein paar Zahlen: 3, 14, 159,",
)
"""Short, unequal, in the form in which judges are asked and in plain prose."""


@dataclass(frozen=True, slots=True)
class Golden:
    """Texts and their logits.

    Attributes:
        ids: Token ids of each of `TEXTS`.
        logits: Of each one's last token, float32 [texts, vocabulary].
    """

    ids: tuple[NDArray[np.int64], ...]
    logits: NDArray[np.float32]


def save_golden(golden: Golden, path: Path) -> None:
    """Writes golden logits as an npz file.

    Raises:
        OSError: The file cannot be written.
    """
    lengths = np.array([len(text) for text in golden.ids])
    np.savez_compressed(path, lengths=lengths, ids=np.concatenate(golden.ids), logits=golden.logits)


def load_golden(path: Path) -> Golden:
    """Reads what `save_golden` wrote.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not such a file, or a part of it is missing.
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            ends = np.cumsum(file["lengths"])
            return Golden(ids=tuple(np.split(file["ids"], ends[:-1])), logits=file["logits"])
    except (KeyError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path} is not a file of golden logits: {error}") from error
