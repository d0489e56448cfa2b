"""Write an exported encoder's tokenizer as a tokenizer.json that returns the same ids as transformers."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import transformers
from tokenizers import Tokenizer, normalizers

from gradewire_models.build.publish import write_tokenizer
from gradewire_models.catalog.entries import EncoderMetadata
from gradewire_models.errors import ExportError
from gradewire_models.export.folder import EncoderFolder
from gradewire_models.repository.config import TOKENIZER_FILE
from gradewire_models.repository.suffix import suffixed_ids

SAMPLE_TEXTS = (
    "",
    "a",
    "Yes.",
    "  two  spaces \t and a tab ",
    "The cat sat on the mat.",
    "42 red balloons, 7 of them at 12:30 p.m.",
    "Café Zürich naïve \u4f60\u597d \u3053\u3093\u306b\u3061\u306f \U0001f600",
    "ANSWER: It is, to the best of my knowledge, the Eiffel Tower in Paris (France)!",
    "A long answer goes on and on, with one clause after another, until nobody knows what was asked. " * 8,
)
"""Texts of different lengths and scripts, for comparisons of tokenizers and encoders."""


_OVERRULED = f"the published {TOKENIZER_FILE} gives different ids; the ids of transformers are used"


def load_tokenizer(folder: EncoderFolder) -> Any:
    """Load the tokenizer with transformers, which converts slow tokenizers to fast ones.

    Raises:
        ExportError: The tokenizer is missing, cannot be converted, or returns non-zero token types.
    """
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder.directory, trust_remote_code=False, local_files_only=True, use_fast=True
        )
    # transformers raises errors of many types.
    except Exception as error:
        said = " ".join(str(error).strip().splitlines()[:3])
        raise ExportError(f"{_no_tokenizer(folder)} (some need sentencepiece or tiktoken): {said}") from error
    # For a folder without a tokenizer, transformers returns a tokenizer with only special tokens.
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise ExportError(_no_tokenizer(folder))
    if not tokenizer.is_fast:
        raise ExportError(f"the tokenizer of {folder.directory} ({type(tokenizer).__name__}) has no fast version")
    if any(any(tokenizer(text).get("token_type_ids", [])) for text in SAMPLE_TEXTS):
        raise ExportError(f"{folder.model_type} needs token types other than 0, which the graph does not support")
    return tokenizer


def write_exported_tokenizer(folder: EncoderFolder, tokenizer: Any, target: Path, max_tokens: int) -> tuple[str, ...]:
    """Write tokenizer.json without padding and with truncation at `max_tokens`.

    Use the folder's file if it returns the same ids as transformers. Otherwise use transformers' conversion, which
    includes settings from other files, and return a note.

    Raises:
        ExportError: Neither file returns the same ids as transformers.
        OSError: `target` is not writable.
    """
    published = folder.directory / TOKENIZER_FILE
    converted = target.with_suffix(".converted")
    converted.write_text(tokenizer.backend_tokenizer.to_str(), encoding="utf-8")
    try:
        for source in (published, converted):
            if source.is_file():
                write_tokenizer(source, target, max_tokens)
                if folder.lower_case:
                    _lower_case(target)
                if _agrees(target, tokenizer, max_tokens, lower_case=folder.lower_case):
                    return () if source == published or not published.is_file() else (_OVERRULED,)
    finally:
        converted.unlink()
    raise ExportError(f"the tokenizer of {folder.directory} cannot be written as {TOKENIZER_FILE} with the same ids")


def sample_ids(tokenizer: Any, plan: EncoderMetadata) -> list[list[int]]:
    """Return the token ids of `SAMPLE_TEXTS` with the model's prefix and suffix, as a server cuts them.

    Raises:
        ExportError: The suffix leaves no token for a text.
    """
    if not plan.suffix:
        texts = [plan.prefix + text for text in SAMPLE_TEXTS]
        found: list[list[int]] = tokenizer(texts, truncation=True, max_length=plan.max_tokens)["input_ids"]
        return found
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    read = partial(suffixed_ids, backend, prefix=plan.prefix, suffix=plan.suffix, max_tokens=plan.max_tokens)
    if len(read("")) >= plan.max_tokens:
        raise ExportError(f"prefix and suffix alone have {plan.max_tokens} tokens or more. Raise --max-tokens")
    return [read(text) for text in SAMPLE_TEXTS]


def _no_tokenizer(folder: EncoderFolder) -> str:
    return f"{folder.directory} has no {TOKENIZER_FILE} and no tokenizer that transformers can convert into one"


def _agrees(path: Path, tokenizer: Any, max_tokens: int, *, lower_case: bool) -> bool:
    written = Tokenizer.from_file(str(path))
    texts = [text.lower() if lower_case else text for text in SAMPLE_TEXTS]
    expected: list[list[int]] = tokenizer(texts, truncation=True, max_length=max_tokens)["input_ids"]
    return [encoding.ids for encoding in written.encode_batch(list(SAMPLE_TEXTS))] == expected


def _lower_case(path: Path) -> None:
    tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    steps = [normalizers.Lowercase(), *([tokenizer.normalizer] if tokenizer.normalizer else [])]
    tokenizer.normalizer = normalizers.Sequence(steps)
    path.write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False), encoding="utf-8")
