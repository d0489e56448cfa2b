"""Adapters that PEFT made, merged by PEFT in torch and by the build in numpy: one model."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import peft
import pytest
import torch
import transformers
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_torch
from tests.support.models.tiny_models import DIMS, HEADS, LAYERS, MAX_TOKENS, WIDE, WORDS, Package, make_package

from gradewire_models.build.adapters import merge_adapter, user_adapted
from gradewire_models.build.install import build_model
from gradewire_models.build.quality import embed_texts
from gradewire_models.build.weights import linear_layers

SIZES = {
    "vocab_size": len(WORDS),
    "hidden_size": DIMS,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": WIDE,
    "max_position_embeddings": MAX_TOKENS + 2,
    "layer_norm_eps": 1e-5,
}
TARGETS = {"bert": ["query", "key", "value", "dense"], "mpnet": ["q", "k", "v", "o", "dense"]}
TEXTS = ["w1", "w2 w3 w4", " ".join(f"w{number}" for number in range(50)), "", "w5 w5 w9 w1"]


def load_with_torch(package: Package) -> Any:
    config = transformers.AutoConfig.for_model(package.model.architecture, **SIZES)
    model = transformers.AutoModel.from_config(config, attn_implementation="eager", add_pooling_layer=False).eval()
    absent, odd = model.load_state_dict(load_torch(package.weights), strict=False)
    assert (odd, [name for name in absent if "position_ids" not in name]) == ([], [])
    return model


def encode_with_torch(model: Any) -> np.ndarray:
    rows = []
    with torch.no_grad():
        for text in TEXTS:
            ids = [2, *map(WORDS.index, text.split()), 3]
            hidden = model(torch.tensor([ids])).last_hidden_state[0].double().numpy().mean(axis=0)
            rows.append(hidden / np.linalg.norm(hidden))
    return np.array(rows)


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
@pytest.mark.parametrize("layers", [None, [1, 2]])
def test_pefts_own_merge_is_the_builds(architecture: Any, layers: list[int] | None, tmp_path: Path) -> None:
    package = make_package(tmp_path / "package", architecture)
    torch.manual_seed(3)
    shape = peft.LoraConfig(
        r=4,
        lora_alpha=6,
        target_modules=TARGETS[architecture],
        layers_to_transform=layers,
        lora_dropout=0.1,
        init_lora_weights=False,
    )
    adapter = tmp_path / "adapter"
    with warnings.catch_warnings(action="ignore"):  # PEFT asks for what transformers renamed, and for a config.json
        wrapped = peft.get_peft_model(load_with_torch(package), shape)
        wrapped.save_pretrained(adapter)
    untouched = encode_with_torch(load_with_torch(package))
    merged = wrapped.merge_and_unload().eval()

    ours = merge_adapter(load_file(package.weights), adapter, linear_layers(package.model))
    theirs = merged.state_dict()
    for name, tensor in ours.items():
        if name in theirs:
            np.testing.assert_allclose(tensor, theirs[name].numpy(), rtol=0, atol=1e-6, err_msg=name)

    built = build_model(user_adapted(adapter, package.model), tmp_path / "repository", wheels=package.wheels).model
    vectors = embed_texts(built, TEXTS)
    expected = encode_with_torch(merged)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)
    assert np.abs(expected - untouched).max() > 0.05
