import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.support.models.tiny_models import Package

from gradewire_models.build.weights import read_encoder, relative_buckets
from gradewire_models.errors import BuildError


def test_near_distances_have_buckets_of_their_own_and_sides_are_apart() -> None:
    distances = np.arange(-7, 8)
    buckets = relative_buckets(distances, 32)
    assert buckets.tolist() == [7, 6, 5, 4, 3, 2, 1, 0, 17, 18, 19, 20, 21, 22, 23]


@pytest.mark.parametrize(
    ("distance", "bucket"),
    [
        (-8, 8),
        (-11, 8),
        (-12, 9),
        (-15, 9),
        (-16, 10),
        (-31, 11),
        (-32, 12),
        (-63, 13),
        (-64, 14),
        (-127, 15),
        (-500, 15),
    ],
)
def test_far_distances_share_buckets_that_grow_by_the_root_of_two(distance: int, bucket: int) -> None:
    assert relative_buckets(np.array([distance, -distance]), 32).tolist() == [bucket, bucket + 16]


def test_buckets_follow_the_logarithm_away_from_its_edges() -> None:
    sizes = np.arange(9, 128)
    exact = 8 + 8 * np.log(sizes / 8) / math.log(16)
    clear = np.abs(exact - np.round(exact)) > 1e-6
    expected = np.minimum(np.floor(exact), 15)
    assert clear.sum() > 100
    assert (relative_buckets(-sizes, 32)[clear] == expected[clear]).all()


def test_a_missing_tensor_is_named(bert: Package, tmp_path: Path) -> None:
    tensors = load_file(bert.weights)
    del tensors["encoder.layer.1.output.dense.bias"]
    save_file(tensors, tmp_path / "weights")
    with pytest.raises(BuildError, match=r"encoder.layer.1.output.dense.bias.*missing"):
        read_encoder(tmp_path / "weights", bert.model)


def test_another_shape_or_type_is_refused(bert: Package, tmp_path: Path) -> None:
    tensors = load_file(bert.weights)
    name = "encoder.layer.0.attention.self.key.weight"
    for wrong in (tensors[name][:-1], tensors[name].astype(np.float16)):
        save_file(tensors | {name: wrong}, tmp_path / "weights")
        with pytest.raises(BuildError, match=r"attention.self.key.weight must be float32 \[24, 24\]"):
            read_encoder(tmp_path / "weights", bert.model)


def test_more_tokens_than_positions_are_refused(bert: Package) -> None:
    with pytest.raises(BuildError, match="too short for 1000 tokens"):
        read_encoder(bert.weights, replace(bert.model, max_tokens=1000))


def test_what_is_no_safetensors_file_is_refused(bert: Package, tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"nothing of the kind")
    with pytest.raises(BuildError, match="cannot read the weights"):
        read_encoder(tmp_path / "weights", bert.model)
