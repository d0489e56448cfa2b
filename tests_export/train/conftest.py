"""A tiny encoder to train, and examples in its words."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests_export.conftest import Folder

from gradewire_train.encoder import TrainedEncoder, load_base
from gradewire_train.examples import Example

MAX_TOKENS = 24


@pytest.fixture(scope="session")
def base_folder(make_folder: Callable[..., Folder]) -> Path:
    return make_folder("bert", pooling="mean").path


@pytest.fixture
def encoder(base_folder: Path) -> TrainedEncoder:
    return load_base(str(base_folder), max_tokens=MAX_TOKENS)


@pytest.fixture(scope="session")
def examples() -> list[Example]:
    """Answers in pairs of words that mean the same: w0 and w1, w2 and w3, … ."""
    generator = np.random.default_rng(5)
    found = []
    for number in range(96):
        mine, other = generator.permutation(15)[:2].tolist()
        question = f"the w{40 + number % 12}"
        negatives = (f"w{2 * other}", f"w{2 * other + 1}")
        found.append(Example("synonyms", question, f"w{2 * mine}", f"w{2 * mine + 1}", negatives))
    return found


@pytest.fixture(scope="session")
def labelled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of both halves: right where the prediction's word is the reference's partner."""
    path = tmp_path_factory.mktemp("labelled") / "dev.jsonl"
    rows = []
    for number in range(40):
        right = number % 3 == 0
        prediction = f"w{2 * (number % 15) + 1}" if right else f"w{2 * ((number + 4) % 15)}"
        rows.append(
            {
                "question": f"the w{40 + number % 12}",
                "references": [f"w{2 * (number % 15)}", "no"],
                "prediction": prediction,
                "label": int(right),
                "part": number % 2,
                "half": "ab"[number % 5 == 0],
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
