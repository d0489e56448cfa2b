"""Tiny encoders with random weights, saved by transformers as they are published."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.support.processes import (  # noqa: F401 - hooks
    hear_ctrl_c,
    pytest_runtest_call,
    pytest_runtest_setup,
    pytest_runtest_teardown,
    pytest_sessionfinish,
    pytest_timeout_set_timer,
)
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

hear_ctrl_c()
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

SPECIAL = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
WORDS = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(60)), "yes", "no", "the", "cat", "."]
TEXTS = ["yes", "the cat", "the CAT no", "", " ".join(f"w{number}" for number in range(90)), "w5 w6 . w7", "w1 " * 20]
MAX_TOKENS = 40

_SIZES = {"vocab_size": len(WORDS), "hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 40}
_HEADS = {"num_attention_heads": 4}
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": {**_SIZES, **_HEADS, "max_position_embeddings": MAX_TOKENS},
    # Positions are counted from the padding id on, and padding is known by its id.
    "roberta": {**_SIZES, **_HEADS, "max_position_embeddings": MAX_TOKENS + 2, "pad_token_id": 1},
    "electra": {**_SIZES, **_HEADS, "embedding_size": 12, "max_position_embeddings": MAX_TOKENS},
    # A decoder: causal attention, rotary positions, fewer heads for keys than for queries.
    "llama": {**_SIZES, **_HEADS, "num_key_value_heads": 2, "max_position_embeddings": 512},
    # A decoder with biases, whose tokenizer adds no end.
    "qwen2": {**_SIZES, **_HEADS, "num_key_value_heads": 2, "max_position_embeddings": 512},
}


@dataclass(frozen=True, slots=True)
class Folder:
    """A saved encoder, and the model it was saved from."""

    path: Path
    model: Any


def tiny_tokenizer(*, decoder: bool) -> Any:
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, SPECIAL["unk_token"]))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    template = "$A </s>" if decoder else "<s> $A </s>"
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=[("<s>", 0), ("</s>", 2)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)


@pytest.fixture(scope="session")
def make_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Folder]:
    """Makes the folder of a tiny encoder; with `pooling`, as sentence-transformers saves one."""

    def make(model_type: str, *, pooling: str = "", settings: dict[str, Any] | None = None) -> Folder:
        path = tmp_path_factory.mktemp("folders") / f"tiny-{model_type}"
        torch.manual_seed(7)
        config = transformers.AutoConfig.for_model(model_type, **CONFIGS[model_type])
        model = transformers.AutoModel.from_config(config, attn_implementation="eager").eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        model.save_pretrained(path)
        tokenizer = tiny_tokenizer(decoder=model_type == "llama")
        if model_type == "qwen2":
            tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A")
        tokenizer.save_pretrained(path)
        if pooling:
            types = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
            modules = [{"path": at, "type": f"sentence_transformers.models.{kind}"} for at, kind in types.items()]
            (path / "1_Pooling").mkdir()
            (path / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": pooling}))
            (path / "modules.json").write_text(json.dumps(modules))
            (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": MAX_TOKENS}))
        for name, content in (settings or {}).items():
            (path / name).write_text(json.dumps(content))
        return Folder(path, model)

    return make


def expected_vectors(model: Any, ids: Sequence[Sequence[int]], pooling: str) -> Any:
    """What transformers makes of each text alone, pooled by hand."""
    vectors = []
    for text in ids:
        with torch.no_grad():
            found = model(input_ids=torch.tensor([text]))
        rows = found.last_hidden_state[0]
        pooled = {"mean": rows.mean(0), "cls": rows[0], "last": rows[-1]}.get(pooling)
        vectors.append(torch.nn.functional.normalize(found.pooler_output[0] if pooled is None else pooled, dim=0))
    return torch.stack(vectors).numpy()
