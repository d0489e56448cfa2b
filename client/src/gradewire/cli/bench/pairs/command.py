"""`gradewire bench pairs`: which of two answers people prefer, and how often evaluators say the same."""

from __future__ import annotations

import asyncio
import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from gradewire.cli.bench.pairs.rows import PAIR_ALIASES, PairFile
from gradewire.cli.bench.run import interval_notes
from gradewire.cli.input.files import input_options
from gradewire.cli.input.records import format_of, read_records
from gradewire.cli.input.rows import Row
from gradewire.cli.options.connection import Connection, connection_of, connection_options
from gradewire.cli.options.plan import ScorePlan
from gradewire.cli.output.clashes import refuse_clashes
from gradewire.cli.output.documents import write_json, write_text
from gradewire.cli.output.draws import PlacedEstimate
from gradewire.cli.output.tables import FigureTable, estimated, print_figures, to_markdown
from gradewire.cli.output.terminal import progress
from gradewire.cli.problems import EXIT_INTERRUPTED, InputError, exit_codes, one_line_errors
from gradewire.cli.run.file_corpus import takes_corpus
from gradewire.cli.run.judging import RESAMPLES
from gradewire.cli.run.pipeline import Run
from gradewire.metric_types.choice import MetricDefaults, choose_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gradewire.agreement.papers.pairwise import PairwiseReport
    from gradewire.cli.bench.pairs.rows import Pair
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
@click.option("--choice", "choices", metavar="NAME=COLUMN", multiple=True, help="An evaluator's choices. Repeatable.")
@click.option("--metrics", help="Also score both answers with these metrics; the higher score is the choice.")
@click.option("--resamples", type=click.IntRange(min=100), default=RESAMPLES, show_default=True, help="Draws.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draws and of the baselines' coin.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write the table here as Markdown.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.pass_context
def pairs_command(  # noqa: PLR0913 - one argument per option
    ctx: click.Context,
    /,
    *,
    file: str,
    choices: Sequence[str],
    metrics: str | None,
    resamples: int,
    seed: int,
    json_path: Path | None,
    markdown: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Share of the majority votes in FILE that each evaluator reproduces, where 5, 4 or 3 of 5 people agree.

    Beside the evaluators stand two baselines: the longer answer, and a coin.
    """
    for option, path in (("--json", json_path), ("--markdown", markdown)):
        if path is not None:
            refuse_clashes([path], option, {"the input": file})
    records = read_records(file, format_of(file, options["input_format"]))
    found = PairFile.read(records, _named("--map", options["columns"], PAIR_ALIASES), _named("--choice", choices))
    chosen = found.choices()
    if metrics:
        connection = connection_of(options)
        try:
            with one_line_errors():
                scores = asyncio.run(_scores(found.pairs, metrics, connection, ctx.obj, quiet=quiet))
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(EXIT_INTERRUPTED)
        from gradewire.agreement.papers.pairwise import choices_from_scores  # noqa: PLC0415 - scipy takes a second to load

        chosen |= {label: choices_from_scores(sides[:, 0], sides[:, 1]) for label, sides in scores.items()}
    report = _report(found.pairs, chosen, resamples=resamples, seed=seed)
    table = _table(report)
    print_figures([table])
    notes = interval_notes(
        PlacedEstimate(evaluator.evaluator, "reproduced", stratum.stratum, stratum.reproduced)
        for evaluator in report.evaluators
        for stratum in evaluator.strata
    )
    for note in notes:
        click.echo(note)
    left_out = [
        *found.sentences(),
        *([f"{report.no_majority} pairs were left out: no majority"] if report.no_majority else []),
        *([f"{report.voted_tie} pairs were left out: most people call them a tie"] if report.voted_tie else []),
    ]
    for sentence in left_out:
        click.echo(sentence, err=True)
    if json_path is not None:
        write_json(
            json_path,
            {
                "file": file,
                "pairs": len(found.pairs),
                "left_out": dict(found.left_out),
                "bootstrap": {"resamples": resamples, "seed": seed, "confidence": 0.95, "unit": "pair"},
                "report": report,
            },
        )
    if markdown is not None:
        write_text(markdown, to_markdown([table], notes))


def _named(option: str, pairs: Sequence[str], allowed: Any = None) -> dict[str, str]:
    named = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not equals or not column or (allowed is not None and name not in allowed):
            listed = f", FIELD one of {', '.join(allowed)}" if allowed is not None else ""
            raise click.UsageError(f"{option} {pair}: write {'FIELD' if listed else 'NAME'}=COLUMN{listed}")
        named[name] = column
    return named


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


def _table(report: PairwiseReport) -> FigureTable:
    strata = report.evaluators[0].strata
    return FigureTable(
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
                str(found.strata[-1].ties),
                str(found.strata[-1].failed),
            ]
            for found in report.evaluators
        ],
    )


async def _scores(
    pairs: Sequence[Pair], metrics: str, connection: Connection, transport: Transport | None, *, quiet: bool
) -> dict[str, NDArray[np.float64]]:
    """float64[pairs, 2] by label: the scores of both answers, NaN where one has none."""
    if missing := next((pair for pair in pairs if pair.responses is None or not pair.references), None):
        raise InputError(f"--metrics: {missing.place} lacks an answer or references, which scores are made from")
    if weighted := [
        metric.name for metric in choose_metrics(metrics, MetricDefaults()).metrics if takes_corpus(metric)
    ]:
        raise InputError(f"--metrics: {weighted[0]} weighs words by a corpus, which is not made of a file of pairs")
    columns: dict[str, NDArray[np.float64]] = {}
    done = 0
    async with connection.client(transport) as client:
        run = Run(client, ScorePlan(metrics=metrics))
        await run.begin()
        with progress("scoring", _SIDES * len(pairs), quiet=quiet) as shown:
            async with contextlib.aclosing(run.score(_rows(pairs))) as batches:
                async for batch in batches:
                    for scored in batch:
                        pair, side = divmod(done, _SIDES)
                        for label, result in scored.output["scores"].items():
                            column = columns.setdefault(label, np.full((len(pairs), _SIDES), math.nan))
                            column[pair, side] = math.nan if result["score"] is None else result["score"]
                        done += 1
                    shown.done(done)
    return columns


def _rows(pairs: Sequence[Pair]) -> Iterator[Row]:
    for position, pair in enumerate(pairs):
        for side, response in enumerate(pair.responses or ()):
            item = {"question": pair.question, "references": list(pair.references), "prediction": response}
            yield Row(_SIDES * position + side, pair.place, str(pair.index), item, "", "")
