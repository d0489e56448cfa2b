"""Writes tokenizer.json the way the server needs it: no padding, cut at the model's length."""

import json
from pathlib import Path

from gradewire_models.errors import BuildError


def write_tokenizer(source: Path, target: Path, max_tokens: int) -> None:
    """Copies a tokenizer with padding switched off and truncation at `max_tokens`.

    The published files pad everything to 128 tokens, which would cost short texts most of their speed.

    Raises:
        BuildError: `source` is not a tokenizer file.
        OSError: `target` cannot be written.
    """
    try:
        tokenizer = json.loads(source.read_text(encoding="utf-8"))
        tokenizer["padding"] = None
        tokenizer["truncation"] = {
            "direction": "Right",
            "max_length": max_tokens,
            "strategy": "LongestFirst",
            "stride": 0,
        }
    except (UnicodeDecodeError, json.JSONDecodeError, TypeError) as error:
        raise BuildError(f"{source} is not a tokenizer file: {error}") from error
    target.write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
