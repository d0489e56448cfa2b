"""Input for bulk runs: labelled rows, repeated with variations so that no two predictions are the same."""

import itertools
import json
from pathlib import Path

from benchmarks.common.rows import read_rows

MODEL = "fid"
"""Its answers are short, so that a run of many rows measures what is done for each row and not windows alone."""


def write_rows(path: Path, data: Path, count: int, *, first: int = 0) -> None:
    """Writes `count` rows as JSON lines; `first` is the number of the first, and other numbers give other rows."""
    rows = read_rows(data, (MODEL,))
    with path.open("w", encoding="utf-8") as stream:
        for number, row in zip(range(first, first + count), itertools.cycle(rows), strict=False):
            varied = {
                "id": f"row-{number}",
                "question": row["question"],
                "references": row["references"],
                "prediction": f"{row['prediction']}, said in answer {number}",
            }
            stream.write(json.dumps(varied, ensure_ascii=False) + "\n")
