"""The script around sentence-transformers: both ways give SMILE; a small library stands for the real one."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np
import pytest
from benchmarks.gpu.calling import items_of
from benchmarks.gpu.script_step import WAYS, score, script
from benchmarks.gpu.step_processes import NotRunError
from benchmarks.peers.smile_workers import row_texts, smile_v1
from numpy.typing import NDArray
from tests.benchmarks.gpu.test_gpu import bench


class Model:
    """An encoder whose vectors depend on a text's letters only."""

    def __init__(self, directory: str = "", *, device: str = "cpu") -> None:
        self.opened: Final = (directory, device)
        self.encoded: Final[list[tuple[int, int]]] = []
        MODELS.append(self)

    def encode(self, texts: list[str], *, batch_size: int, normalize_embeddings: bool) -> NDArray[np.float32]:
        assert normalize_embeddings
        self.encoded.append((len(texts), batch_size))
        counts = np.array([[text.lower().count(chr(97 + letter)) + 1e-3 for letter in range(26)] for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


MODELS: list[Model] = []


@pytest.fixture
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("sentence_transformers")
    library.__dict__["SentenceTransformer"] = Model
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    MODELS.clear()


def test_both_ways_give_the_definitions_smile_and_the_tuned_one_embeds_each_text_once() -> None:
    rows = items_of("some", 5) * 2
    tuned, untuned = Model(), Model()
    scores = [score(model, rows, way) for model, way in zip((tuned, untuned), WAYS, strict=True)]
    texts = [row_texts(row) for row in rows]
    expected = [
        smile_v1(row, Model().encode(own, batch_size=1, normalize_embeddings=True))
        for row, own in zip(rows, texts, strict=True)
    ]
    assert scores[0] == pytest.approx(expected)
    assert scores[1] == pytest.approx(expected)
    count, distinct = sum(map(len, texts)), len({text for own in texts for text in own})
    assert (tuned.encoded, untuned.encoded) == ([(distinct, 1_024)], [(count, 32)])
    assert distinct <= count / 2


@pytest.mark.usefixtures("_library")
def test_the_step_measures_each_way_on_the_steps_device(minilm: Path, tmp_path: Path) -> None:
    (tmp_path / "modules.json").touch()
    rows = list(script(replace(bench(minilm, rehearsal=True), checkpoint=tmp_path)))
    assert [(row["script"], row["rows"]) for row in rows] == [("tuned", "24 drawn"), ("untuned", "24 drawn")]
    assert [(row["precision"], row["unique texts"]) for row in rows] == [("fp16", True), ("fp32", False)]
    assert rows[0]["mean SMILE"] == pytest.approx(rows[1]["mean SMILE"], abs=2e-4)
    assert all(row["rows/s"] > 0 for row in rows)
    assert [model.opened for model in MODELS] == [(str(tmp_path), "cpu")] * 2


@pytest.mark.usefixtures("_library")
def test_without_a_folder_of_the_encoder_the_step_says_how_to_make_one(minilm: Path, tmp_path: Path) -> None:
    with pytest.raises(
        NotRunError, match=r"Make a pack with --pieces, or run: python -m benchmarks\.peers\.checkpoint"
    ):
        list(script(replace(bench(minilm, rehearsal=True), checkpoint=tmp_path)))


def test_without_the_library_the_step_says_so(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(NotRunError, match="this Python lacks torch"):
        list(script(bench(minilm, rehearsal=True)))
