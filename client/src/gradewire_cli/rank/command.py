"""The command `gradewire rank`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from gradewire.metrics import Compare
from gradewire.ranking import list_rule
from gradewire_cli.options.common import INPUT_FILE, OUTPUT_FILE, check_resume, resume_options
from gradewire_cli.options.connection import connection_of, connection_options
from gradewire_cli.options.help import column_lines, command, option, stacked
from gradewire_cli.options.judge import prices_of, prices_option
from gradewire_cli.options.metrics import read_prompt_file
from gradewire_cli.problems import (
    NOTHING_SCORED,
    InputError,
    check_something_scored,
    exit_on_interrupt,
    one_line_errors,
    tell,
)
from gradewire_cli.rank.layout import RANK_COLUMNS
from gradewire_cli.rank.reading import QuestionReader
from gradewire_cli.rank.run import RankJob
from gradewire_cli.results.journal import check_outputs, check_suffix, files_of
from gradewire_cli.rows.input_file import input_file, input_options, named_columns
from gradewire_cli.scoring.choosers import comparison_of, is_comparison

if TYPE_CHECKING:
    from collections.abc import Mapping


@command("rank", failed_rows=NOTHING_SCORED, rank_columns=column_lines(RANK_COLUMNS))
@input_options
@connection_options
@stacked(
    option("--judge"),
    option("--prompt", "prompts", type=INPUT_FILE, multiple=True),
    option("--by", default=Compare.name),
    option("--max-pairs", type=click.IntRange(min=1)),
    prices_option,
)
@stacked(
    option("--out", type=OUTPUT_FILE),
    resume_options,
    option("--dry-run", is_flag=True),
    option("--quiet", is_flag=True),
)
@click.pass_context
def rank_command(ctx: click.Context, /, **options: Any) -> None:
    """Rank several answers to each question. A judge compares them in pairs, in both orders.

    With --by compare:listwise, it puts all answers to a question in order, for at most four orders of the answers.

    Each row of FILE has a question and a list of answers, or there is one row for each answer with a question_id. An
    answer's score is the share of its decided pairs that it won. Ties and pairs without a winner are counted but not
    scored. Write one line per question, with score, rank and status of each answer.
    """
    check_resume(options, options["out"])
    if options["dry_run"] and options["resume"]:
        raise click.UsageError("--dry-run estimates all rows and cannot be combined with --resume")
    job = _job(options)
    if options["dry_run"]:
        with exit_on_interrupt(), one_line_errors():
            asyncio.run(job.estimate(ctx.obj))
        return
    kept = []
    if job.out is not None:
        check_suffix("--out", job.out, (".jsonl", ".ndjson"))
        kept = [("--out", path) for path in files_of(job.out)]
    check_outputs(kept, job.source.named_paths)
    with exit_on_interrupt(lambda: _hint(options)), one_line_errors():
        asyncio.run(job.run(ctx.obj))
    if not options["quiet"]:
        tell(job.report())
    check_something_scored("no answer could be ranked", job.statuses)


def _hint(options: Mapping[str, Any]) -> str:
    out = options["out"]
    return f"interrupted. Ranked questions are in {out}. Continue with --resume" if out else "interrupted"


def _job(options: Mapping[str, Any]) -> RankJob:
    text = options["by"]
    if not is_comparison(text):
        raise click.UsageError(
            f"--by {text}: only a judge's comparison can rank answers, such as compare. To rank by a metric, score the "
            "answers with gradewire score"
        )
    mapped = named_columns("--map", options["columns"], RANK_COLUMNS)
    with one_line_errors():
        prompts = [read_prompt_file(path) for path in options["prompts"]]
        by = comparison_of(text, options["judge"], prompts)
        by_lists = list_rule(by, options["max_pairs"])
    source = input_file({**options, "columns": ()}, needed=("prediction",))
    reading = replace(source.reading, columns=(*source.reading.columns, *mapped.values()))
    if by.image and options["dry_run"]:
        raise InputError(
            "--dry-run cannot estimate image=true, because only a judge's server knows a picture's tokens. Leave "
            "image=true out"
        )
    return RankJob(
        source=replace(source, reading=reading),
        reader=QuestionReader(mapped, options["max_pairs"], source.folder if by.image else None, by_lists),
        by=by,
        connection=connection_of(options),
        prices=prices_of(options),
        out=options["out"],
        resume=options["resume"],
        overwrite=options["overwrite"],
        quiet=options["quiet"],
    )
