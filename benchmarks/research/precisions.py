"""Speed of the default encoder in fp32, int8 and bf16, on short texts and on answers of 40 and 400 words.

`python -m benchmarks.research.precisions --data DIR --repository DIR` (the directory holds all three, as
`gradewire models build` makes them) runs the same texts through the server's own sessions, one thread, in the runs that
its batcher cuts; the precisions take turns in every round. Prints tokens per CPU second, the ratios to fp32 (medians
over rounds), and how much a text's vector differs when it runs alone.
"""

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from benchmarks.common.rows import DATA_DIRECTORY, read_lines
from benchmarks.latency.long_answers import LongAnswers
from numpy.typing import NDArray

from gradewire_models.catalog.loading import default_model
from gradewire_models.repository.built import default_repository, load_built
from gradewire_server.encoders.cuda import Gpu
from gradewire_server.encoders.fair_queue import plan_runs
from gradewire_server.encoders.local import Session, open_session
from gradewire_server.encoders.outputs import open_tokenizer
from gradewire_server.settings.engine import ComputeConfig, GpuConfig

SUFFIXES: Final = ("", "-int8", "-bf16")
SHORT_WORDS: Final = range(2, 7)
COMPUTE: Final = ComputeConfig(workers=1, lone_run_threads=1)

Ids = NDArray[np.int32]


class Text(NamedTuple):
    """What `plan_runs` sees of a text."""

    ids: Ids
    length: int


def texts_of(data: Path, count: int) -> dict[str, list[str]]:
    """Texts of each length: references and windows as they are, and answers one after another."""
    rows = read_lines(data / "evouna_dev.jsonl")
    references = dict.fromkeys(text for row in rows for text in row["references"])
    short = [text for text in references if len(text.split()) in SHORT_WORDS][: 16 * count]
    answers = LongAnswers(data)
    long = {f"{words} words": [answers.next(words)["prediction"] for _ in range(count)] for words in (40, 400)}
    return {"2 to 6 words": short, **long}


def runs_of(texts: Sequence[Ids], compute: ComputeConfig) -> list[list[Ids]]:
    """Runs as the server cuts them of one call."""
    waiting = sorted((Text(ids, len(ids)) for ids in texts), key=lambda text: -text.length)
    runs = []
    while waiting:
        count = tokens = 0
        while count < len(waiting) and (not count or tokens + waiting[count].length <= compute.max_batch_tokens):
            tokens += waiting[count].length
            count += 1
        taken, waiting = waiting[:count], waiting[count:]
        planned = plan_runs(
            taken,
            max_tokens=compute.max_batch_tokens,
            overhead_tokens=compute.run_overhead_tokens,
            padding_cost=compute.padding_cost,
        )
        runs += [[text.ids for text in run] for run in planned]
    return runs


def vectors(session: Session, runs: Sequence[Sequence[Ids]]) -> NDArray[np.float32]:
    """Sentence vectors of all texts, in the order of the runs."""
    return np.concatenate([session.run(run, layers=(), exclusive=False).sentences for run in runs])


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA_DIRECTORY, help="directory of the labelled rows")
    parser.add_argument("--repository", type=Path, default=default_repository(), help="where the models are built")
    parser.add_argument("--texts", type=int, default=32, help="answers of each length; of short texts 16 times as many")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    texts_by_length = texts_of(options.data, options.texts)
    models = [load_built(options.repository, default_model().name + suffix) for suffix in SUFFIXES]
    opened = {model.numeric_class: open_session(model, COMPUTE, GpuConfig(device="cpu"), Gpu(None)) for model in models}
    tokenizer = open_tokenizer(models[0])
    print(f"load average {os.getloadavg()[0]:.1f}")
    print("| texts | tokens of one | precision | runs of | tokens per CPU s | fp32's CPU over it | alone, in a batch |")
    print("|---|---:|---|---|---:|---:|---:|")
    for name, texts in texts_by_length.items():
        ids = [text.ids for text in tokenizer.encode(texts)]
        for how in ("a call", "one text"):
            cut = {
                precision: [[each] for each in ids[: options.texts]]
                if how == "one text"
                else runs_of(ids, each.compute)
                for precision, each in opened.items()
            }
            seconds: dict[str, list[float]] = {each: [] for each in opened}
            for round_ in range(options.rounds + 1):
                for precision, each in opened.items():
                    began_s = time.process_time()
                    vectors(each.session, cut[precision])
                    if round_:  # the first one compiles and packs
                        seconds[precision].append(time.process_time() - began_s)
            (exact, *_) = seconds.values()
            for precision, each in opened.items():
                own, texts_run = seconds[precision], [ids for run in cut[precision] for ids in run]
                ratio = statistics.median(first / other for first, other in zip(exact, own, strict=True))
                together = vectors(each.session, cut[precision])
                effect = np.abs(together - vectors(each.session, [[text] for text in texts_run])).max()
                tokens = sum(map(len, texts_run))
                print(
                    f"| {name} | {tokens / len(texts_run):.0f} | {precision} | {how} "
                    f"| {tokens / statistics.median(own):,.0f} | {ratio:.2f} | {effect:.1e} |",
                    flush=True,
                )
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
