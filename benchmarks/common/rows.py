"""The human-labelled rows that benchmarks read; they are not part of the project."""

import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

# Where `python -m benchmarks.data get` puts them; git ignores it.
DATA_DIRECTORY: Final = Path(__file__).resolve().parents[2] / ".data"
DEFAULT_DATA: Final = DATA_DIRECTORY / "evouna_dev.jsonl"
GET_COMMAND: Final = "python -m benchmarks.data get"
HEADLINE_MODELS = ("gpt35", "gpt4")

Row = dict[str, Any]
WARM_UP: Final[Row] = {"id": "0", "question": "?", "references": ["a warm up"], "prediction": "this is only to warm up"}


def require_files(*paths: Path) -> None:
    """Ends the program with exit code 2 where one of the files is missing."""
    if missing := [str(path) for path in paths if not path.is_file()]:
        sys.stderr.write(
            f"{', '.join(missing)}: not there; get the labelled rows with {GET_COMMAND}, or name others (--data)\n"
        )
        raise SystemExit(2)


def read_lines(path: Path) -> list[Row]:
    """All rows of a file of JSON lines; ends the program with exit code 2 where it is missing."""
    require_files(path)
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_rows(path: Path, models: tuple[str, ...] = HEADLINE_MODELS) -> list[Row]:
    """Rows of the given models; ends the program as `read_lines` does."""
    return [row for row in read_lines(path) if row["model"] in models]


def sample_rows(rows: list[Row], count: int, seed: int) -> list[Row]:
    """`count` rows drawn without replacement, the same ones for the same seed."""
    return random.Random(seed).sample(rows, count)  # noqa: S311 - a sample, not a secret


def items_of(rows: Iterable[Row]) -> list[Row]:
    """What a client sends of the rows: neither their labels nor the models that answered."""
    return [{name: row[name] for name in ("id", "question", "references", "prediction")} for row in rows]
