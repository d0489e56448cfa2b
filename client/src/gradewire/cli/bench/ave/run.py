"""Scores of every evaluator on the parts of AVE: the samples written out as rows, scored like any labelled file."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradewire.agreement.papers.ave import merged_descriptions
from gradewire.agreement.papers.ave_figures import AveRows
from gradewire.cli.bench.ave.file import PARTS
from gradewire.cli.input.files import InputFile
from gradewire.cli.input.rows import RowOptions
from gradewire.cli.output.files import write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradewire.cli.bench.ave.file import AveFile, AveSample
    from gradewire.cli.output.summary import MetricTally
    from gradewire.cli.run.labelled_run import LabelledRun
    from gradewire.transport import Transport


@dataclass(frozen=True, slots=True)
class AveScores:
    """Scores on the chosen samples, by evaluator.

    Attributes:
        tallies: What became of its items.
        missing: How many samples have each part, but no score there.
        server_version: Version of gradewire where they were scored; "" where scores were read.
    """

    rows: Mapping[str, AveRows]
    tallies: Mapping[str, MetricTally]
    missing: Mapping[str, Sequence[int]]
    server_version: str = ""


def write_items(path: Path, samples: Sequence[AveSample]) -> None:
    """Writes everything that is scored, one item a line, as a labelled file that `gradewire score` takes.

    All samples, so that an item keeps its line whatever is chosen.

    Raises:
        InputError: The file cannot be written.
    """
    lines = (
        json.dumps({**item, "sample": sample.number, "chosen": int(sample.chosen)}, ensure_ascii=False)
        for sample in samples
        for _, item in sample.parts()
    )
    write_text(path, "".join(f"{line}\n" for line in lines))


def ave_scores(
    file: AveFile,
    run: LabelledRun,
    merge: Any,
    transport: Transport | None,
    check: Callable[[Sequence[str]], object],
) -> AveScores:
    """Scores the chosen samples, or reads their scores.

    Args:
        file: The samples.
        run: Metrics, connection, earlier scores; its rows are replaced by the samples.
        merge: How the descriptions of a sample become one score, as in `merged_descriptions`.
        transport: From tests, in place of the connection.
        check: Given the labels of the metrics before anything is scored.

    Raises:
        click.ClickException: A metric, the server or a file of scores is not as it has to be.
    """
    with tempfile.TemporaryDirectory(prefix="gradewire-ave-") as directory:
        items = Path(directory) / "items.jsonl"
        write_items(items, file.samples)
        source = InputFile(
            (str(items),), RowOptions({}, {"chosen": frozenset("1")}, ("references", "prediction", "label"))
        )
        labelled = replace(run, source=source).collect(transport, check=check)
    judged = labelled.judged()
    rows, missing = {}, {}
    # Part 1 of a sample has the references that tell questions of the same words apart.
    firsts = np.cumsum([0, *(1 + len(each.descriptions) + bool(each.shifted_references) for each in file.chosen)])[:-1]
    for label, scores in judged.scores.items():
        by_part, absent = _by_part(file.chosen, scores, merge)
        rows[label] = AveRows(
            scores=by_part,
            labels=np.array([sample.label for sample in file.chosen], dtype=np.float64),
            datasets=[sample.dataset for sample in file.chosen],
            questions=[judged.questions[first] for first in firsts],
        )
        missing[label] = [int(count) for count in (np.isnan(by_part) & ~absent).sum(axis=0)]
    return AveScores(rows, labelled.tallies, missing, labelled.server_version)


def _by_part(
    samples: Sequence[AveSample], scores: NDArray[np.float64], merge: Any
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """float64[samples, parts], and where the sample has no such part."""
    found = np.full((len(samples), len(PARTS)), np.nan)
    most = max((len(sample.descriptions) for sample in samples), default=0)
    described = np.full((len(samples), max(1, most)), np.nan)
    absent = np.zeros(found.shape, dtype=bool)
    # As `AveSample.parts` gives them.
    remaining = iter(scores.tolist())
    for number, sample in enumerate(samples):
        found[number, 0] = next(remaining)
        described[number, : len(sample.descriptions)] = list(islice(remaining, len(sample.descriptions)))
        if sample.shifted_references:
            found[number, 2] = next(remaining)
        absent[number] = (False, not sample.descriptions, not sample.shifted_references)
    found[:, 1] = merged_descriptions(described, how=merge)
    return found, absent
