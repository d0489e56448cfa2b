import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tests.models.build.weights.tiny_adapters import ALPHA, RANK, settings_of, shapes_of, tensors_of, write_adapter
from tests.support.examples import example_count
from tests.support.models.tiny_models import LAYERS, Package

from gradewire_models.build.weights.adapter_config import read_adapter_config
from gradewire_models.build.weights.encoder import linear_layers
from gradewire_models.build.weights.merge import merge_adapter
from gradewire_models.catalog.adapters import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from gradewire_models.errors import BuildError


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    return write_adapter(tmp_path / "adapter", "bert")


def merged(bert: Package, adapter: Path) -> dict[str, np.ndarray]:
    return merge_adapter(load_file(bert.weights), adapter, linear_layers(bert.model))


def change_tensors(adapter: Path, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    tensors = dict(load_file(adapter / ADAPTER_WEIGHTS))
    change(tensors)
    save_file(tensors, adapter / ADAPTER_WEIGHTS)


def change_settings(adapter: Path, **changes: Any) -> None:
    (adapter / ADAPTER_CONFIG).write_text(json.dumps(settings_of("bert", **changes)), encoding="utf-8")


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_weights_get_the_scaled_product_and_nothing_else_changes(
    packages: dict[str, Package], tmp_path: Path, architecture: Any
) -> None:
    package = packages[architecture]
    adapter = write_adapter(tmp_path / "adapter", architecture)
    before, low = load_file(package.weights), tensors_of(architecture)
    after = merge_adapter(before, adapter, linear_layers(package.model))
    changed = {f"{name}.weight" for name in shapes_of(architecture)}
    assert {name for name, tensor in after.items() if not np.array_equal(tensor, before[name])} == changed
    for name in shapes_of(architecture):
        narrow, wide = (low[f"base_model.model.{name}.lora_{side}.weight"].astype(np.float64) for side in "AB")
        expected = before[f"{name}.weight"].astype(np.float64) + ALPHA / RANK * (wide @ narrow)
        found = after[f"{name}.weight"]
        assert found.dtype == np.float32
        # Rounded once: no further from the exact value than its nearest float32, but for float64's own last bits.
        assert np.all(np.abs(found - expected) <= np.spacing(np.abs(found)) * 0.5000001)


def test_layers_to_transform_leaves_the_others_alone(bert: Package, adapter: Path) -> None:
    change_settings(adapter, layers_to_transform=[1, LAYERS - 1])
    change_tensors(adapter, lambda tensors: [tensors.pop(name) for name in list(tensors) if ".layer.0." in name])
    before, after = load_file(bert.weights), merged(bert, adapter)
    moved = {name.split(".")[2] for name in after if not np.array_equal(after[name], before[name])}
    assert moved == {"1", str(LAYERS - 1)}


def test_matrices_in_float32_and_a_pooler_nobody_reads_are_taken(bert: Package, adapter: Path) -> None:
    before = merged(bert, adapter)
    pooler = {f"base_model.model.pooler.dense.lora_{side}.weight": np.ones((2, 2), np.float32) for side in "AB"}
    change_tensors(
        adapter,
        lambda tensors: tensors.update({k: v.astype(np.float32) for k, v in tensors.items()}, **pooler),
    )
    after = merged(bert, adapter)
    assert all(np.array_equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"peft_type": "IA3"}, 'peft_type should be "LORA", not "IA3"'),
        ({"r": 0}, "r should be a whole number from 1, not 0"),
        ({"r": True}, "r should be a whole number"),
        ({"r": "8"}, "r should be a whole number"),
        ({"lora_alpha": 0}, "lora_alpha should be a number above 0"),
        ({"lora_alpha": float("nan")}, "lora_alpha should be"),
        ({"lora_alpha": 10**400}, "lora_alpha should be"),
        ({"target_modules": ".*query"}, "target_modules should be a list"),
        ({"target_modules": []}, "target_modules should be a list"),
        ({"target_modules": ["gate_proj"]}, r"target_modules \['gate_proj'\] in layers all are none of this encoder's"),
        ({"layers_to_transform": [LAYERS]}, "are none of this encoder's"),
        ({"layers_to_transform": "1"}, "layers_to_transform should be null"),
        ({"bias": "all"}, 'bias should be off: it cannot be merged into the weights, not "all"'),
        ({"use_dora": True}, "use_dora should be off"),
        ({"use_rslora": True}, "use_rslora should be off"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out should be off"),
        ({"modules_to_save": ["embeddings"]}, "modules_to_save should be off"),
        ({"rank_pattern": {"query": 4}}, "rank_pattern should be off"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights should be"),
        ({"what_comes_next_year": {"k": "v" * 500}}, "what_comes_next_year should be off"),
        ({"base_model_name_or_path": 5}, "base_model_name_or_path should be a name"),
    ],
)
def test_a_setting_that_cannot_be_merged_is_named(
    bert: Package, adapter: Path, changes: dict[str, Any], says: str
) -> None:
    change_settings(adapter, **changes)
    with pytest.raises(BuildError, match=says) as raised:
        merged(bert, adapter)
    assert ADAPTER_CONFIG in str(raised.value)
    assert len(str(raised.value)) < 500


FIRST = "base_model.model.encoder.layer.0.attention.self.query.lora_A.weight"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tensors: tensors.pop(FIRST), "query.lora_A.weight is missing"),
        (lambda tensors: tensors.update({"more": np.zeros(1, np.float32)}), "more belongs to no layer that it names"),
        (lambda tensors: tensors.update({FIRST: tensors[FIRST][:1]}), r"should be F16 or F32 \[3, 24\], found F16 \[1"),
        (lambda tensors: tensors.update({FIRST: tensors[FIRST].astype(np.int32)}), "found I32"),
        (lambda tensors: tensors.update({FIRST: tensors[FIRST] * np.nan}), "no numbers"),
        (lambda tensors: tensors.update({FIRST: np.full_like(tensors[FIRST], np.inf)}), "no numbers"),
        (lambda tensors: tensors.update({k: np.full(v.shape, 3e38, np.float32) for k, v in tensors.items()}), "grows"),
    ],
)
def test_matrices_that_do_not_fit_are_named(
    bert: Package, adapter: Path, change: Callable[[dict[str, np.ndarray]], object], says: str
) -> None:
    change_tensors(adapter, change)
    with pytest.raises(BuildError, match=says) as raised:
        merged(bert, adapter)
    assert ADAPTER_WEIGHTS in str(raised.value)


class _Bomb:
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (open, ("/nonexistent/loaded", "w"))


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 100, b"\xff" * 8 + b"{}", pickle.dumps(_Bomb()), (10**9).to_bytes(8, "little") + b"{", b"{" * 5000],
)
def test_a_file_that_is_none_is_an_error_of_ours(bert: Package, adapter: Path, content: bytes) -> None:
    (adapter / ADAPTER_WEIGHTS).write_bytes(content)
    with pytest.raises(BuildError, match="cannot read the adapter"):
        merged(bert, adapter)


def test_a_huge_file_is_not_read(bert: Package, adapter: Path) -> None:
    for name, size in ((ADAPTER_WEIGHTS, 1 << 40), (ADAPTER_CONFIG, 1 << 32)):
        content = (adapter / name).read_bytes()
        with (adapter / name).open("r+b") as sparse:
            sparse.truncate(size)
        with pytest.raises(BuildError, match=f"{name} has {size} bytes"):
            merged(bert, adapter)
        (adapter / name).write_bytes(content)


def test_weights_of_another_shape_than_the_catalog_says_are_named(bert: Package, adapter: Path) -> None:
    deeper = replace(bert.model, layers=LAYERS + 1)
    with pytest.raises(BuildError, match=rf"have no encoder\.layer\.{LAYERS}\."):
        merge_adapter(load_file(bert.weights), adapter, linear_layers(deeper))


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=example_count(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(field=st.sampled_from([*settings_of("bert"), "anything"]), value=_json)
def test_any_setting_is_read_or_refused_by_name(adapter: Path, field: str, value: object) -> None:
    change_settings(adapter, **{field: value})
    try:
        found = read_adapter_config(adapter / ADAPTER_CONFIG)
    except BuildError as error:
        assert field in str(error)  # noqa: PT017 - either way is right, and this one says why
    else:
        assert found.rank >= 1
        assert found.scale > 0
        assert found.targets


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000, '{"peft_type": "LORA", "r": ' + "9" * 5000 + "}"])
def test_settings_that_are_no_json_object_are_an_error_of_ours(adapter: Path, text: str) -> None:
    (adapter / ADAPTER_CONFIG).write_text(text, encoding="utf-8")
    with pytest.raises(BuildError, match=ADAPTER_CONFIG):
        read_adapter_config(adapter / ADAPTER_CONFIG)
