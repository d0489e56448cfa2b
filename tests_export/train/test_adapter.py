"""What a training leaves behind is what it says it is."""

import json
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
from safetensors.numpy import load_file
from tests_export.train.conftest import MAX_TOKENS

from gradewire_models.export.folder import read_folder
from gradewire_train import TrainingError
from gradewire_train.encoder import TrainedEncoder, load_base, prepare, save_trained, set_weights, trained_weights
from gradewire_train.recipes import Training

TEXTS = ["the w1", "w2 w3 w4 no", "yes"]


def vectors(encoder: TrainedEncoder) -> np.ndarray:
    encoder.model.eval()
    with torch.inference_mode():
        return np.asarray(encoder.vectors(encoder.tokenize(TEXTS), chunk=2).numpy())


def moved(encoder: TrainedEncoder) -> TrainedEncoder:
    """As if it had been trained: every matrix has something in it, that float16 holds exactly."""
    generator = torch.Generator().manual_seed(3)
    drawn = {
        name: torch.randint(-8, 9, each.shape, generator=generator) / 64
        for name, each in trained_weights(encoder.model).items()
    }
    set_weights(encoder.model, drawn)
    return encoder


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # of transformers, about PEFT
def test_an_adapter_is_read_back_by_peft_as_the_same_encoder(base_folder: Path, tmp_path: Path) -> None:
    encoder = load_base(str(base_folder), max_tokens=MAX_TOKENS)
    before = vectors(encoder)
    prepare(encoder, Training(rank=3, alpha=6.0))
    np.testing.assert_array_equal(vectors(encoder), before)  # B is 0 before the first step
    trained = vectors(moved(encoder))
    save_trained(encoder, Training(), tmp_path)
    again = load_base(str(base_folder), max_tokens=MAX_TOKENS)
    again.model = peft.PeftModel.from_pretrained(again.model, str(tmp_path)).merge_and_unload()
    np.testing.assert_allclose(vectors(again), trained, atol=2e-6)
    assert np.abs(trained - before).max() > 1e-3


def test_an_adapter_is_small_plain_and_the_same_bytes_every_time(base_folder: Path, tmp_path: Path) -> None:
    for name in ("1", "2"):
        encoder = load_base(str(base_folder), max_tokens=MAX_TOKENS)
        prepare(encoder, Training(rank=3))
        save_trained(moved(encoder), Training(), tmp_path / name)
    for file in ("adapter_model.safetensors", "adapter_config.json"):
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()
    assert {each.name for each in (tmp_path / "1").iterdir()} == {"adapter_model.safetensors", "adapter_config.json"}
    config = json.loads((tmp_path / "1" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == base_folder.name
    assert (config["r"], config["lora_alpha"], config["bias"]) == (3, 32.0, "none")
    assert config["target_modules"] == ["dense", "key", "query", "value"]
    tensors = load_file(tmp_path / "1" / "adapter_model.safetensors")
    assert {each.dtype for each in tensors.values()} == {np.dtype(np.float16)}
    # Two layers, six matrices each, two factors; nothing of the pooler, which nobody reads.
    assert len(tensors) == 2 * 6 * 2
    assert not any("pooler" in name for name in tensors)


def test_only_the_layers_that_are_wanted_get_an_adapter(encoder: TrainedEncoder) -> None:
    prepare(encoder, Training(rank=2, targets=("query", "value"), first_layer=1))
    trained = trained_weights(encoder.model)
    assert len(trained) == 4
    assert all(".layer.1.attention.self." in name for name in trained)


@pytest.mark.parametrize("training", [Training(targets=("quary",)), Training(first_layer=2)])
def test_an_adapter_of_nothing_is_refused(encoder: TrainedEncoder, training: Training) -> None:
    with pytest.raises(TrainingError, match="dense, key, query, value in 2 layers"):
        prepare(encoder, training)


def test_weights_of_another_shape_are_refused(encoder: TrainedEncoder) -> None:
    prepare(encoder, Training(rank=2))
    other = {name: each[:1] for name, each in trained_weights(encoder.model).items()}
    with pytest.raises(TrainingError, match="rank, targets or base differ"):
        set_weights(encoder.model, other)


def test_all_weights_become_a_folder_that_export_reads(encoder: TrainedEncoder, tmp_path: Path) -> None:
    training = Training(method="full", max_tokens=MAX_TOKENS)
    prepare(encoder, training)
    trained = vectors(moved(encoder))
    save_trained(encoder, training, tmp_path)
    folder = read_folder(tmp_path)
    assert (folder.pooling, folder.max_tokens, folder.model_type) == ("mean", MAX_TOKENS, "bert")
    np.testing.assert_allclose(vectors(load_base(str(tmp_path), max_tokens=MAX_TOKENS)), trained, atol=1e-6)
