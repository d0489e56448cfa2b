"""The simulated card takes an H100's times, and answers each text alike in every batch."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.gpu.fake_device import (
    BASE,
    H100_TIMES,
    NAME,
    FakeCard,
    gpu_variant,
    list_with_variant,
    load_variant,
)

from gradewire_models.repository.built import load_built
from gradewire_server.encoders.gpu_shapes import Bucket, ShapeTimes

FAST = ShapeTimes({Bucket(1, 8): 1e-6})


@pytest.mark.parametrize(("shape", "tokens_per_s"), [(Bucket(1, 8), 20e3), (Bucket(256, 64), 3.27e6)])
def test_measured_shapes_have_their_measured_times(shape: Bucket, tokens_per_s: float) -> None:
    assert H100_TIMES.seconds(shape) == shape.size / tokens_per_s


def test_other_shapes_have_times_between_those_around_them() -> None:
    assert H100_TIMES.seconds(Bucket(64, 8)) < H100_TIMES.seconds(Bucket(64, 32)) < H100_TIMES.seconds(Bucket(256, 64))


def test_a_texts_vectors_do_not_depend_on_its_batch(minilm: Path) -> None:
    card = FakeCard(gpu_variant(load_built(minilm, BASE)), times=FAST)
    text, other = np.array([[101, 7, 102, 0]]), np.array([[101, 8, 102, 0]])
    mask = np.array([[1, 1, 1, 0]])
    (alone,), _ = card.run(text, mask, ())
    both, (tokens,) = card.run(np.concatenate([other, text]), np.concatenate([mask, mask]), ("tokens",))
    padded, _ = card.run(np.pad(text, ((0, 0), (0, 4))), np.pad(mask, ((0, 0), (0, 4))), ())
    assert np.array_equal(alone, both[1])
    assert np.array_equal(alone, padded[0])
    assert not np.array_equal(alone, both[0])
    assert np.linalg.norm(alone) == pytest.approx(1.0, abs=1e-5)
    assert tokens.shape == (2, 4, len(alone))
    assert (card.runs, card.rows) == (3, 4)


def test_the_card_fails_from_the_moment_on_at_which_the_file_exists(minilm: Path, tmp_path: Path) -> None:
    card = FakeCard(gpu_variant(load_built(minilm, BASE)), times=FAST, fault=f"lost:{tmp_path / 'broken'}")
    ids = np.ones((1, 8), np.int64)
    card.run(ids, ids, ())
    (tmp_path / "broken").touch()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="CUDA failure 719"):
            card.run(ids, ids, ())


def test_the_encoder_is_the_cpus_under_another_name(minilm: Path) -> None:
    base, variant = load_built(minilm, BASE), load_variant(minilm, NAME)
    assert (variant.name, variant.base, variant.numeric_class) == (NAME, BASE, "fp16-cuda")
    assert variant.onnx_path == base.onnx_path
    assert not variant.on_cpu
    assert [model.name for model in list_with_variant(minilm)][-1] == NAME
    assert load_variant(minilm, BASE) == base
