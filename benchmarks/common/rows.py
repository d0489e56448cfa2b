"""The human-labelled rows that benchmarks read in place; they are not part of the project."""

import json
import random
import sys
from pathlib import Path
from typing import Any

DEFAULT_DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "evouna_dev.jsonl"
HEADLINE_MODELS = ("gpt35", "gpt4")

Row = dict[str, Any]


def read_rows(path: Path, models: tuple[str, ...] = HEADLINE_MODELS) -> list[Row]:
    """Rows of the given models; ends the program with exit code 2 where the file is not there."""
    if not path.is_file():
        sys.stderr.write(f"{path} is not there: these figures need EVOUNA's labelled rows; name them with --data\n")
        raise SystemExit(2)
    with path.open(encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        return [row for row in rows if row["model"] in models]


def sample_rows(rows: list[Row], count: int, seed: int) -> list[Row]:
    """`count` rows drawn without replacement, the same ones for the same seed."""
    return random.Random(seed).sample(rows, count)  # noqa: S311 - a sample, not a secret
