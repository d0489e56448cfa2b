"""A tiny encoder that reads as many tokens as a grader needs, and labelled rows in its words."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests_export.conftest import CONFIGS, tiny_tokenizer

from gradewire_models.repository.grader_input import MAX_TOKENS
from gradewire_train.encoder import TrainedEncoder, load_base


@pytest.fixture(scope="session")
def wide_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wide(tmp_path_factory.mktemp("folders") / "tiny-wide", "bert")


def write_wide(path: Path, architecture: str) -> Path:
    """Writes an encoder of bert's shape; mpnet has positions from 2 on, relative ones, and no token types."""
    torch.manual_seed(7)
    shape = {**CONFIGS["bert"], "max_position_embeddings": MAX_TOKENS + 2}
    config = transformers.AutoConfig.for_model(architecture, **shape)
    model = transformers.AutoModel.from_config(config, attn_implementation="eager").eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(path)
    tiny_tokenizer(decoder=False).save_pretrained(path)
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": "mean"}))
    types = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"path": at, "type": f"sentence_transformers.models.{kind}"} for at, kind in types.items()]
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": MAX_TOKENS}))
    return path


@pytest.fixture
def wide(wide_folder: Path) -> TrainedEncoder:
    return load_base(str(wide_folder), max_tokens=MAX_TOKENS)


@pytest.fixture(scope="session")
def rows_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Right answers say "yes" and wrong ones "no", which a random encoder can learn to tell apart."""
    rows: list[dict[str, Any]] = []
    for number in range(48):
        right = number % 2 == 0
        word = f"w{number % 20}"
        rows.append(
            {
                "id": f"r{number}", "question": f"the w{40 + number % 12}", "references": [word, "no"],
                "prediction": f"the {word} yes" if right else f"the w{(number + 7) % 20} no",
                "label": int(right), "dataset": "own",
            }
        )  # fmt: skip
    path = tmp_path_factory.mktemp("rows") / "own.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path
