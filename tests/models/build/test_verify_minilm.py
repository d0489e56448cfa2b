"""The real default model against vectors that sentence-transformers 5.7 computed with the published weights."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer

from gradewire_models.build.verify import verify_built
from gradewire_models.catalog.loading import default_model
from gradewire_models.repository.built import load_built
from gradewire_models.runtime import onnxruntime

GOLDEN = json.loads(Path(__file__).with_name("golden_minilm.json").read_text(encoding="utf-8"))
TEXTS = [text if isinstance(text, str) else text["repeat"] * text["times"] for text in GOLDEN["texts"]]
VECTORS = np.array(GOLDEN["vectors"], np.float32)


class Encoder:
    def __init__(self, repository: Path) -> None:
        model = load_built(repository, "all-MiniLM-L6-v2")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model.onnx_path, options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(model.tokenizer_path))

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        padded = np.zeros((len(ids), max(map(len, ids))), np.int64)
        mask = np.zeros_like(padded)
        for row, tokens in enumerate(ids):
            padded[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        found: NDArray[np.float32] = self._session.run(
            ["sentence_embedding"], {"input_ids": padded, "attention_mask": mask}
        )[0]
        return found


@pytest.fixture(scope="module")
def encoder(minilm: Path) -> Encoder:
    return Encoder(minilm)


def test_one_batch_of_unequal_lengths_agrees(encoder: Encoder) -> None:
    np.testing.assert_allclose(encoder.encode(TEXTS), VECTORS, atol=5e-6)


@pytest.mark.parametrize("row", range(len(TEXTS)))
def test_every_text_alone_agrees(encoder: Encoder, row: int) -> None:
    np.testing.assert_allclose(encoder.encode(TEXTS[row : row + 1])[0], VECTORS[row], atol=5e-6)


def test_the_built_model_verifies(minilm: Path) -> None:
    checks = verify_built(minilm, "all-MiniLM-L6-v2", default_model())
    assert [check for check in checks if not check.passed] == []
    assert len(checks) == 7
