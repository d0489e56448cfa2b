"""`gradewire bench pairs`: which of two answers people prefer, and how often evaluators say the same."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from gradewire.cli.bench.engine import TableResult, TableSpec
from gradewire.cli.bench.pair_file import PAIR_COLUMNS, PairFile
from gradewire.cli.input.files import input_options, named_columns
from gradewire.cli.input.rows import Row
from gradewire.cli.options.connection import Connection, connection_of, connection_options
from gradewire.cli.options.labelled import draw_options
from gradewire.cli.output.interval_notes import PlacedEstimate
from gradewire.cli.output.progress import progress
from gradewire.cli.output.summary import Summary
from gradewire.cli.problems import InputError, one_line_errors
from gradewire.cli.run.file_corpus import takes_corpus
from gradewire.cli.run.labelled_run import RESAMPLES, described_draws
from gradewire.cli.run.plan import ScorePlan
from gradewire.cli.run.row_scorer import RowScorer
from gradewire.metric_types.choice import MetricDefaults, choose_metrics
from gradewire.tables import Table, count, estimated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gradewire.agreement.papers.pairwise import PairwiseReport
    from gradewire.cli.bench.engine import TableCall
    from gradewire.cli.bench.pair_file import Pair
    from gradewire.cli.run.row_scorer import ScoredRow

_SIDES = 2


def _compute(call: TableCall) -> TableResult:
    options = call.options
    found = PairFile.read(call.source.records(), call.columns, named_columns("--choice", options["choices"]))
    chosen, summary, version, place = found.choices(), Summary(), "", ""
    if options["metrics"]:
        connection = connection_of(options)
        with one_line_errors():
            scores, version = asyncio.run(_scores(found.pairs, call, connection, summary))
        place = connection.place
        from gradewire.agreement.papers.pairwise import choices_from_scores  # noqa: PLC0415 - scipy takes a second to load

        chosen |= {label: choices_from_scores(sides[:, 0], sides[:, 1]) for label, sides in scores.items()}
    resamples, seed = options["resamples"], options["seed"]
    report = _report(found.pairs, chosen, resamples=resamples, seed=seed)
    kinds = {"no majority": report.no_majority, "most people call them a tie": report.voted_tie}
    return TableResult(
        tables=[_table(report)],
        notes=[],
        intervals=_intervals(report),
        left_out=[
            *found.left_out.sentences("pairs"),
            *(f"{number} pairs were left out: {why}" for why, number in kinds.items() if number),
        ],
        document={
            "file": call.source.name,
            "pairs": len(found.pairs),
            "left_out": dict(found.left_out.counts),
            "bootstrap": described_draws(resamples, seed, unit="pair"),
            "report": report,
        },
        parameters={"resamples": resamples, "seed": seed, "choices": list(options["choices"])},
        rows=len(found.pairs),
        tallies=summary.metrics,
        server_version=version,
        place=place,
    )


def _intervals(report: PairwiseReport) -> Iterator[PlacedEstimate]:
    for evaluator in report.evaluators:
        for stratum in evaluator.strata:
            yield PlacedEstimate(evaluator.evaluator, "reproduced", stratum.stratum, stratum.reproduced)


def _report(pairs: Sequence[Pair], choices: Any, *, resamples: int, seed: int) -> PairwiseReport:
    from gradewire.agreement.papers.pairwise import JudgedPairs, pairwise_agreement  # noqa: PLC0415 - as above

    words = [[len(text.split()) for text in pair.responses] for pair in pairs if pair.responses]
    judged = JudgedPairs(
        votes=[pair.votes for pair in pairs],
        choices=choices,
        # The baseline of the longer answer needs all of them.
        lengths_words=([a for a, _ in words], [b for _, b in words]) if len(words) == len(pairs) else None,
        instructions=[pair.instruction_key for pair in pairs],
    )
    try:
        return pairwise_agreement(judged, resamples=resamples, seed=seed)
    except ValueError as error:
        raise InputError(str(error)) from error


def _table(report: PairwiseReport) -> Table:
    strata = report.evaluators[0].strata
    return Table(
        "Majority votes reproduced, by how many annotators agree",
        [
            "evaluator",
            *(f"{stratum.stratum}\n{stratum.pairs + stratum.failed} pairs" for stratum in strata),
            "ties",
            "failed",
        ],
        [
            [
                found.evaluator,
                *(estimated(stratum.reproduced) for stratum in found.strata),
                count(found.strata[-1].ties),
                count(found.strata[-1].failed),
            ]
            for found in report.evaluators
        ],
    )


async def _scores(
    pairs: Sequence[Pair], call: TableCall, connection: Connection, summary: Summary
) -> tuple[dict[str, NDArray[np.float64]], str]:
    """float64[pairs, 2] by label: the scores of both answers, NaN where one has none; and the server's version."""
    if missing := next((pair for pair in pairs if pair.responses is None or not pair.references), None):
        raise InputError(f"--metrics: {missing.place} lacks an answer or references, which scores are made from")
    chosen = choose_metrics(call.options["metrics"], MetricDefaults())
    if weighted := [metric.name for metric in chosen.metrics if takes_corpus(metric)]:
        raise InputError(f"--metrics: {weighted[0]} weighs words by a corpus, which is not made of a file of pairs")
    columns: dict[str, NDArray[np.float64]] = {}

    def take(batch: Sequence[ScoredRow]) -> None:
        for scored in batch:
            summary.add(scored.output)
            for label, result in scored.output["scores"].items():
                column = columns.setdefault(label, np.full((len(pairs), _SIDES), math.nan))
                column[divmod(scored.row.index, _SIDES)] = math.nan if result["score"] is None else result["score"]

    async with connection.open(call.transport) as client:
        scorer = await RowScorer.open(client, ScorePlan(chosen=chosen))
        with progress("scoring", _SIDES * len(pairs), quiet=call.options["quiet"]) as shown:
            await scorer.score(_rows(pairs), take, shown)
        version = (await client.models()).server_version
    return columns, version


def _rows(pairs: Sequence[Pair]) -> Iterator[Row]:
    for position, pair in enumerate(pairs):
        for side, response in enumerate(pair.responses or ()):
            item = {"question": pair.question, "references": list(pair.references), "prediction": response}
            yield Row(_SIDES * position + side, pair.place, str(pair.index), item, "", "")


pairs_command = TableSpec(
    name="pairs",
    about="""Share of the majority votes in FILE that each evaluator reproduces, where 5, 4 or 3 of 5 people agree.

    Beside the evaluators stand two baselines: the longer answer, and a coin.
    """,
    columns=PAIR_COLUMNS,
    options=[
        input_options,
        connection_options,
        click.option(
            "--choice",
            "choices",
            metavar="NAME=COLUMN",
            multiple=True,
            help="Column with an evaluator's choices. May be repeated.",
        ),
        click.option("--metrics", help="Also score both answers with these metrics; the higher score is the choice."),
        draw_options(resamples=RESAMPLES),
    ],
    compute=_compute,
    epilog="""
Votes are a list of A, B and tie, one per annotator, or counts ({"A": 4, "B": 1}); a choice is one of them,
and several evaluators' choices a mapping by name.

\b
Examples:
  gradewire bench pairs pairs.jsonl
  gradewire bench pairs pairs.csv --choice judge=gpt_choice --choice other=other_choice
  gradewire bench pairs pairs.jsonl --metrics rouge_l,meteor,bertscore
""",
).command()
