import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradewire_models.errors import ExportError
from gradewire_models.export.folder import read_folder


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A sentence-transformers folder as they are published; its weights are never read here."""
    write(tmp_path / "config.json", {"model_type": "bert", "max_position_embeddings": 512})
    types = ("Transformer", "Pooling", "Normalize")
    paths = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in zip(paths, types, strict=True)
    ]
    write(tmp_path / "modules.json", modules)
    write(tmp_path / "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    write(tmp_path / "sentence_bert_config.json", {"max_seq_length": 384, "do_lower_case": False})
    write(tmp_path / "README.md", "---\ntags: [a]\nlicense: apache-2.0\n---\n# A model\nlicense: mit\n")
    write(tmp_path / "model.safetensors", "weights")
    return tmp_path


def test_everything_a_folder_says(encoder: Path) -> None:
    folder = read_folder(encoder)
    assert (folder.directory, folder.model_type, folder.pooling) == (encoder, "bert", "cls")
    assert (folder.max_tokens, folder.lower_case, folder.licence) == (384, False, "apache-2.0")
    assert (folder.default_prompt, folder.prompts) == ("", {})
    assert folder.weight_sha256 == {"model.safetensors": hashlib.sha256(b"weights").hexdigest()}


def test_prompts_and_the_one_that_goes_before_every_text(encoder: Path) -> None:
    settings = {"prompts": {"query": "Find: ", "document": ""}, "default_prompt_name": "query"}
    write(encoder / "config_sentence_transformers.json", settings)
    folder = read_folder(encoder)
    assert (folder.default_prompt, folder.prompts) == ("Find: ", {"query": "Find: ", "document": ""})
    write(encoder / "config_sentence_transformers.json", {**settings, "default_prompt_name": None})
    assert read_folder(encoder).default_prompt == ""


def test_the_limit_of_the_text_comes_from_the_first_file_that_knows(encoder: Path) -> None:
    (encoder / "sentence_bert_config.json").rename(encoder / "sentence_roberta_config.json")
    write(encoder / "tokenizer_config.json", {"model_max_length": 128})
    assert read_folder(encoder).max_tokens == 384
    (encoder / "sentence_roberta_config.json").unlink()
    assert read_folder(encoder).max_tokens == 128
    write(encoder / "tokenizer_config.json", {"model_max_length": 10**30})
    assert read_folder(encoder).max_tokens == 512
    write(encoder / "config.json", {"model_type": "bert"})
    assert read_folder(encoder).max_tokens is None


@pytest.mark.parametrize("card", [None, "# No front matter\nlicense: mit\n", "---\ntags: [a]\n---\n"])
def test_a_licence_nobody_states_is_not_guessed(encoder: Path, card: str | None) -> None:
    (encoder / "README.md").unlink()
    if card is not None:
        write(encoder / "README.md", card)
    assert read_folder(encoder).licence == ""


def test_a_pooling_that_is_given_wins(encoder: Path) -> None:
    assert read_folder(encoder, pooling="last").pooling == "last"


def swap_weights(directory: Path, name: str) -> None:
    (directory / "model.safetensors").rename(directory / name)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda at: (at / "config.json").unlink(), "has no model_type"),
        (lambda at: write(at / "config.json", {"model_type": "t5", "is_encoder_decoder": True}), "encoder-decoder"),
        (lambda at: swap_weights(at, "pytorch_model.bin"), "pickle"),
        (lambda at: (at / "model.safetensors").unlink(), "no weights"),
        (lambda at: write(at / "adapter_config.json", {}), "adapter"),
        (lambda at: write(at / "sentence_bert_config.json", {"transformer_task": "fill-mask"}), "'fill-mask'"),
        (
            lambda at: write(at / "config_sentence_transformers.json", {"prompts": {}, "default_prompt_name": "x"}),
            "no such prompt as 'x'",
        ),
    ],
)
def test_what_is_not_exported_is_said(encoder: Path, damage: Callable[[Path], object], says: str) -> None:
    damage(encoder)
    with pytest.raises(ExportError, match=says):
        read_folder(encoder)
