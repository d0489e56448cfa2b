"""Training for windows: which tokens a window's vector is the mean of, and the loss against plain loops."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.research import window_training
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.metrics.text.smile_normalise import normalise

PIECES = ["[CLS]", "[SEP]", "[UNK]", "the", "two", "tall", "##er", "dog", "##s", "ran", "off", ",", ".", "a", "x"]
TEXT = "The two taller dogs, a dog ran off. X."
DIMS = 6


@pytest.fixture(scope="module")
def program() -> Any:
    return window_training


@pytest.fixture
def tokenizer(tmp_path: Path) -> TextTokenizer:
    tokenizer = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(PIECES)}, unk_token=PIECES[2]))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return TextTokenizer(tmp_path / "tokenizer.json", max_tokens=64, prefix="")


def drawing(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a test's draws, not secrets


def hidden_of(ids: Any) -> Any:
    """A vector that depends on the token and its place."""
    angles = ids[..., None] * torch.arange(1, DIMS + 1) * 0.7 + torch.arange(ids.shape[1])[:, None] * 0.3
    return torch.cos(angles)


class Words:
    """A teacher: a direction for any token ids."""

    def vectors(self, texts: Any) -> Any:
        found = [np.random.default_rng(ids.tolist()).standard_normal(DIMS) for ids in texts]
        return torch.tensor(np.array([each / np.linalg.norm(each) for each in found]), dtype=torch.float32)


def test_a_window_has_the_tokens_of_its_words_and_no_others(program: Any, tokenizer: TextTokenizer) -> None:
    words = normalise(TEXT).words
    seen = set()
    for seed in range(20):
        passage = program.passage_of(tokenizer, TEXT, drawing(seed))
        for (begin, end), text in zip(passage.windows, passage.texts, strict=True):
            seen.add(text)
            pieces = [
                PIECES[i] for i, inside in zip(passage.ids[begin:end], passage.inside[begin:end], strict=True) if inside
            ]
            raw = " ".join(pieces).replace(" ##", "")
            assert normalise(raw).text == text
    assert {" ".join(words[start : start + 2]) for start in range(len(words) - 1)} <= seen


def test_the_terms_against_plain_loops(program: Any, tokenizer: TextTokenizer) -> None:
    student = SimpleNamespace(model=lambda **given: SimpleNamespace(last_hidden_state=hidden_of(given["input_ids"])))
    batch = [program.passage_of(tokenizer, text, drawing(3)) for text in (TEXT, "Two dogs ran.")]
    teacher = Words()
    apart, cosines, kept = program.Distillation(student, teacher, tokenizer).terms(batch, ("two dog",))
    means, wanted, moved = [], [], []
    for passage in batch:
        vectors = hidden_of(torch.tensor(passage.ids[None].astype(np.int64)))[0].numpy()
        for begin, end in passage.windows:
            mean = np.mean(
                [v for v, inside in zip(vectors[begin:end], passage.inside[begin:end], strict=True) if inside], 0
            )
            means.append(mean / np.linalg.norm(mean))
        wanted += [teacher.vectors([read.ids])[0].numpy() for read in tokenizer.encode(passage.texts)]
        moved.append(1 - float(sentence(vectors) @ teacher.vectors([passage.ids])[0].numpy()))
    (alone,) = (read.ids for read in tokenizer.encode(["two dog"]))
    vectors = hidden_of(torch.tensor(alone[None].astype(np.int64)))[0].numpy()
    of_alone = 1 - float(sentence(vectors) @ teacher.vectors([alone])[0].numpy())
    own, target = np.array(means), np.array(wanted)
    assert float(apart) == pytest.approx(1 - np.mean(np.sum(own * target, axis=1)), abs=1e-5)
    assert float(cosines) == pytest.approx(np.mean((own @ target.T - target @ target.T) ** 2), abs=1e-5)
    assert float(kept) == pytest.approx(np.mean(moved) + of_alone, abs=1e-5)


def sentence(vectors: Any) -> Any:
    mean = vectors.mean(axis=0)
    return mean / np.linalg.norm(mean)
