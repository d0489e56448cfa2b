"""`gradewire bench pairs`: which of two answers people prefer, and how often evaluators say the same."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from gradewire.cli.bench.manifest import BenchManifest, BenchScores
from gradewire.cli.bench.pairs.rows import PAIR_ALIASES, PairFile
from gradewire.cli.input.files import input_file, input_options, named_columns
from gradewire.cli.input.rows import Row
from gradewire.cli.options.connection import Connection, connection_of, connection_options
from gradewire.cli.output.files import TableFiles, table_file_options
from gradewire.cli.output.interval_notes import PlacedEstimate, interval_notes
from gradewire.cli.output.output_check import check_outputs
from gradewire.cli.output.progress import progress
from gradewire.cli.output.summary import Summary
from gradewire.cli.output.tables import show_tables
from gradewire.cli.problems import InputError, exit_codes, exit_on_interrupt, one_line_errors
from gradewire.cli.run.file_corpus import takes_corpus
from gradewire.cli.run.labelled_run import RESAMPLES, described_draws
from gradewire.cli.run.manifest_file import manifest_option
from gradewire.cli.run.plan import ScorePlan
from gradewire.cli.run.row_scorer import RowScorer
from gradewire.metric_types.choice import MetricDefaults, choose_metrics
from gradewire.tables import Table, count, estimated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gradewire.agreement.papers.pairwise import PairwiseReport
    from gradewire.cli.bench.pairs.rows import Pair
    from gradewire.cli.run.row_scorer import ScoredRow
    from gradewire.transport import Transport

_SIDES = 2


@click.command(
    "pairs",
    epilog=f"""\b
Columns, by the first of these names that a row has:
{chr(10).join(f"  {name:<12} {' '.join(usual)}" for name, usual in PAIR_ALIASES.items())}

Votes are a list of A, B and tie, one per annotator, or counts ({{"A": 4, "B": 1}}); a choice is one of them,
and several evaluators' choices a mapping by name.

\b
Examples:
  gradewire bench pairs pairs.jsonl
  gradewire bench pairs pairs.csv --choice judge=gpt_choice --choice other=other_choice
  gradewire bench pairs pairs.jsonl --metrics rouge_l,meteor,bertscore

{exit_codes(failed_rows="")}""",
)
@input_options
@connection_options
@click.option(
    "--choice",
    "choices",
    metavar="NAME=COLUMN",
    multiple=True,
    help="Column with an evaluator's choices. May be repeated.",
)
@click.option("--metrics", help="Also score both answers with these metrics; the higher score is the choice.")
@click.option(
    "--resamples",
    type=click.IntRange(min=100),
    default=RESAMPLES,
    help="Bootstrap draws behind the intervals.",
)
@click.option("--seed", type=int, default=0, help="Seed of the draws and of the coin that is a baseline.")
@table_file_options
@manifest_option
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.pass_context
def pairs_command(  # noqa: PLR0913 - one argument per option
    ctx: click.Context,
    /,
    *,
    choices: Sequence[str],
    metrics: str | None,
    resamples: int,
    seed: int,
    quiet: bool,
    **options: Any,
) -> None:
    """Share of the majority votes in FILE that each evaluator reproduces, where 5, 4 or 3 of 5 people agree.

    Beside the evaluators stand two baselines: the longer answer, and a coin.
    """
    files = TableFiles.of(options)
    columns = named_columns("--map", options["columns"], PAIR_ALIASES)
    source = input_file({**options, "columns": ()})
    manifest = BenchManifest.of("bench pairs", options, files)
    check_outputs([*files.named, *manifest.named], source.named_paths)
    found = PairFile.read(source.records(), columns, named_columns("--choice", choices))
    chosen = found.choices()
    scored = BenchScores(inputs=list(source.named_paths.values()), rows=len(found.pairs), tallies={})
    if metrics:
        connection = connection_of(options)
        summary = Summary()
        with exit_on_interrupt(), one_line_errors():
            scores, version = asyncio.run(_scores(found.pairs, metrics, connection, ctx.obj, summary, quiet=quiet))
        scored = replace(scored, tallies=summary.metrics, place=connection.place, server_version=version)
        from gradewire.agreement.papers.pairwise import choices_from_scores  # noqa: PLC0415 - scipy takes a second to load

        chosen |= {label: choices_from_scores(sides[:, 0], sides[:, 1]) for label, sides in scores.items()}
    report = _report(found.pairs, chosen, resamples=resamples, seed=seed)
    table = _table(report)
    notes = interval_notes(
        PlacedEstimate(evaluator.evaluator, "reproduced", stratum.stratum, stratum.reproduced)
        for evaluator in report.evaluators
        for stratum in evaluator.strata
    )
    left_out = [
        *found.left_out.sentences("pairs"),
        *([f"{report.no_majority} pairs were left out: no majority"] if report.no_majority else []),
        *([f"{report.voted_tie} pairs were left out: most people call them a tie"] if report.voted_tie else []),
    ]
    show_tables([table], notes, left_out)
    document = {
        "file": source.name,
        "pairs": len(found.pairs),
        "left_out": dict(found.left_out.counts),
        "bootstrap": described_draws(resamples, seed, unit="pair"),
        "report": report,
    }
    files.write(document, [table], notes)
    manifest.write(scored, resamples=resamples, seed=seed, choices=list(choices))


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


async def _scores(  # noqa: PLR0913 - what is scored, by what, where, and who counts
    pairs: Sequence[Pair],
    metrics: str,
    connection: Connection,
    transport: Transport | None,
    summary: Summary,
    *,
    quiet: bool,
) -> tuple[dict[str, NDArray[np.float64]], str]:
    """float64[pairs, 2] by label: the scores of both answers, NaN where one has none; and the server's version."""
    if missing := next((pair for pair in pairs if pair.responses is None or not pair.references), None):
        raise InputError(f"--metrics: {missing.place} lacks an answer or references, which scores are made from")
    chosen = choose_metrics(metrics, MetricDefaults())
    if weighted := [metric.name for metric in chosen.metrics if takes_corpus(metric)]:
        raise InputError(f"--metrics: {weighted[0]} weighs words by a corpus, which is not made of a file of pairs")
    columns: dict[str, NDArray[np.float64]] = {}

    def take(batch: Sequence[ScoredRow]) -> None:
        for scored in batch:
            summary.add(scored.output)
            for label, result in scored.output["scores"].items():
                column = columns.setdefault(label, np.full((len(pairs), _SIDES), math.nan))
                column[divmod(scored.row.index, _SIDES)] = math.nan if result["score"] is None else result["score"]

    async with connection.open(transport) as client:
        scorer = await RowScorer.open(client, ScorePlan(chosen=chosen))
        with progress("scoring", _SIDES * len(pairs), quiet=quiet) as shown:
            await scorer.score(_rows(pairs), take, shown)
        version = (await client.models()).server_version
    return columns, version


def _rows(pairs: Sequence[Pair]) -> Iterator[Row]:
    for position, pair in enumerate(pairs):
        for side, response in enumerate(pair.responses or ()):
            item = {"question": pair.question, "references": list(pair.references), "prediction": response}
            yield Row(_SIDES * position + side, pair.place, str(pair.index), item, "", "")
