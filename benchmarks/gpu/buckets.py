"""Compare grids of shapes for GPU runs by padding and by number of CUDA graphs; needs no GPU.

Run `python -m benchmarks.gpu.buckets [--data FILE] [--model NAME]`. The texts are those that SMILE embeds for EVOUNA's
rows. Calls contain 64 rows, one row with all its windows, or a single short answer. The server's code splits each call
for a GPU, by the times that were measured on an H100.
"""

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.common.rows import DEFAULT_DATA, Row, read_rows, sample_rows
from benchmarks.gpu.fake_device import H100_TIMES
from tokenizers import Tokenizer

from gradewire_models.repository.built import BuiltModel, default_repository, load_built
from gradewire_server.encoders.gpu_shapes import MAX_RUN_TOKENS, ROWS, TOKENS, Buckets

ROWS_OF_A_CALL = 64
CALLS = 60
SEED = 20261125

GRIDS: dict[str, tuple[Sequence[int], Sequence[int]]] = {
    "one length": ((), ROWS),
    "lengths x 4": ((8, 32, 128), ROWS),
    "lengths x 2, rows x 4 (chosen)": (TOKENS, ROWS),
    "lengths x 2, rows x 4 up to 256": (TOKENS, (1, 4, 16, 64, 256)),
    "lengths x 2, rows x 2": (TOKENS, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)),
    "lengths x 2, rows x 8": (TOKENS, (1, 8, 64, 512)),
    "steps of 8 to 64, rows x 4": ((*range(8, 65, 8), 96, 128, 192, 256, 384, 512), ROWS),
}


def windows(answer: str, references: Sequence[str]) -> set[str]:
    """Return all word sequences in the answer that are as long as a reference."""
    words = answer.split()
    counts = {len(reference.split()) for reference in references}
    return {
        " ".join(words[start : start + count]) for count in counts for start in range(max(0, len(words) - count + 1))
    }


def texts_of(rows: Sequence[Row]) -> list[str]:
    """Return the distinct texts that SMILE embeds for the rows."""
    texts: set[str] = set()
    for row in rows:
        texts |= {row["prediction"], *row["references"], *windows(row["prediction"], row["references"])}
    return sorted(text for text in texts if text)


def cost(lengths: Sequence[int], buckets: Buckets) -> tuple[int, int, float]:
    """Return how many padded tokens, runs and seconds of an H100 a call needs."""
    shapes = [part.bucket for part in buckets.cover(lengths)]
    return sum(shape.size for shape in shapes), len(shapes), sum(map(H100_TIMES.seconds, shapes))


def calls_of(rows: list[Row], model: BuiltModel) -> dict[str, list[list[int]]]:
    """Return each call's text lengths in tokens, by kind of call."""
    tokenizer = Tokenizer.from_file(str(model.tokenizer_path))

    def lengths(texts: Sequence[str]) -> list[int]:
        return [len(encoding.ids) for encoding in tokenizer.encode_batch_fast(list(texts))]

    drawn = sample_rows(rows, CALLS * ROWS_OF_A_CALL, SEED) if len(rows) > CALLS * ROWS_OF_A_CALL else rows
    large = [drawn[start : start + ROWS_OF_A_CALL] for start in range(0, len(drawn), ROWS_OF_A_CALL)]
    return {
        f"{ROWS_OF_A_CALL} rows": [lengths(texts_of(batch)) for batch in large],
        "1 row": [lengths(texts_of([row])) for row in drawn[:400]],
        "1 answer": [lengths([row["prediction"]]) for row in drawn[:400] if row["prediction"]],
    }


def table(calls: dict[str, list[list[int]]], model: BuiltModel) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    real = {kind: sum(map(sum, each)) for kind, each in calls.items()}
    yield "| grid | shapes | " + " | ".join(f"{kind}: padded / real, runs, ms a call" for kind in calls) + " |"
    yield "|---|---|" + "---|" * len(calls)
    for name, (tokens, rows) in GRIDS.items():
        buckets = Buckets(model.max_tokens, MAX_RUN_TOKENS, tokens=tokens, rows=rows, times=H100_TIMES)
        cells = []
        for kind, each in calls.items():
            padded, runs, seconds = (
                sum(part) for part in zip(*(cost(lengths, buckets) for lengths in each), strict=True)
            )
            cells.append(f"{padded / real[kind]:.2f}, {runs / len(each):.1f}, {1e3 * seconds / len(each):.2f}")
        yield f"| {name} | {len(buckets.shapes)} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    arguments = parser.parse_args()
    rows = read_rows(arguments.data)
    model = load_built(default_repository(), arguments.model)
    calls = calls_of(rows, model)
    for kind, each in calls.items():
        lengths = sorted(itertools.chain.from_iterable(each))
        print(
            f"{kind}: {len(each)} calls, {len(lengths)} texts, median {lengths[len(lengths) // 2]}, "
            f"95 % up to {lengths[len(lengths) * 95 // 100]}, longest {lengths[-1]} tokens"
        )
    print("\n".join(table(calls, model)))


if __name__ == "__main__":
    main()
