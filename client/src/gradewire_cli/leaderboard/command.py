"""The command `gradewire leaderboard`."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import click

from gradewire._columns import ALIASES
from gradewire.metrics import Correctness
from gradewire_cli.leaderboard.output import (
    RatingOptions,
    headline,
    leaderboard_of,
    notes,
    optional_tables,
)
from gradewire_cli.leaderboard.page import leaderboard_pages
from gradewire_cli.leaderboard.published import PRINTED_TABLES, published_ratings
from gradewire_cli.leaderboard.reading import PAIR_COLUMNS
from gradewire_cli.leaderboard.run import LeaderboardRun
from gradewire_cli.leaderboard.verdicts import ModelFamilies, Verdicts, votes_of
from gradewire_cli.options.common import INPUT_FILE, OUTPUT_FILE, check_resume, resume_options
from gradewire_cli.options.connection import connection_of, connection_options
from gradewire_cli.options.help import column_lines, command, option, stacked
from gradewire_cli.options.judge import judge_options
from gradewire_cli.options.metrics import MetricOptions, read_prompt_file
from gradewire_cli.pages.page import write_page
from gradewire_cli.problems import (
    NOTHING_SCORED,
    InputError,
    check_something_scored,
    exit_on_interrupt,
    one_line_errors,
)
from gradewire_cli.results.journal import check_outputs, files_of
from gradewire_cli.results.table_formats import table_files, write_tables
from gradewire_cli.results.tables import FURTHER_TABLES, all_tables_option, html_option, show_tables, table_file_options
from gradewire_cli.rows.input_file import compared_official_options, input_file, input_options, named_columns
from gradewire_cli.scoring.choosers import draws_over_of, draws_over_option, is_comparison, tie_margin_option
from gradewire_cli.scoring.labelled_run import described_draws, draw_options
from gradewire_stats.ratings import CONTROLS, USUAL_SCALE, Control, RatingScale

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gradewire_cli.leaderboard.output import Leaderboard

RESAMPLES = 1000
# The name of a pair's group in --map before groups had the same name in all commands.
_OLD_GROUP = "family"


def _controls(_: click.Context, __: click.Parameter, value: str | None) -> tuple[Control, ...]:
    given = [each.strip() for each in (value or "").split(",") if each.strip()]
    if unknown := [each for each in given if each not in CONTROLS]:
        raise click.BadParameter(f"{unknown[0]!r} is unknown. Use one or more of {', '.join(CONTROLS)}")
    return tuple(control for control in CONTROLS if control in given)


def _families(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> ModelFamilies:
    named = named_columns("--model-family", value)
    return ModelFamilies({family: [each.strip() for each in given.split(",")] for family, given in named.items()})


_POINTS = click.FloatRange(min=0, min_open=True, max=1e9)
_scale_options = stacked(
    option("--elo-k", type=_POINTS, default=USUAL_SCALE.k),
    option("--elo-scale", type=_POINTS, default=USUAL_SCALE.scale),
    option("--elo-start", type=click.FloatRange(-1e9, 1e9), default=USUAL_SCALE.start),
)


@command("leaderboard", failed_rows=NOTHING_SCORED, pair_columns=column_lines(PAIR_COLUMNS))
@input_options
@compared_official_options
@connection_options
@judge_options
@stacked(
    option("--by", default=Correctness.name),
    option("--scores", type=OUTPUT_FILE, multiple=True, rare=True),
    tie_margin_option,
    option("--target-width", type=click.FloatRange(min=0, min_open=True)),
    option("--max-pairs", type=click.IntRange(min=1)),
    option("--baseline", "reference"),
    option("--reference-as"),
    option("--anchor"),
    option("--control", "controls", callback=_controls),
    option("--model-family", "model_families", multiple=True, callback=_families),
    _scale_options,
    option("--each-vote", is_flag=True),
    draws_over_option,
    option("--published", multiple=True),
    option("--published-gap", type=click.FloatRange(min=0), default=60.0),
    option("--human", type=INPUT_FILE),
)
@stacked(
    option("--out", type=OUTPUT_FILE),
    resume_options,
    html_option,
)
@draw_options(resamples=RESAMPLES)
@all_tables_option
@table_file_options
@click.pass_context
def leaderboard_command(
    ctx: click.Context, /, *, human: Path | None, all_tables: bool, html: Path | None, **options: Any
) -> None:
    """Rate models by pairwise verdicts: Elo, Bradley-Terry and win rates, with intervals over instructions.

    Each FILE contains judged pairs, or answers of several models to the same questions, which the command compares
    first. A pair without a winner, for instance after a failed judgement, is left out, and the command prints how many
    there are and why. A pair whose two orders have different verdicts is a tie.
    """
    files = table_files(options)
    rating = _rating_options(options)
    run = _run(options, rating)
    read = run.source.named_paths | ({"--human": str(human)} if human else {})
    read |= {f"--scores {path}": path for path in options["scores"]}
    read |= {f"--published {name}": name for name in rating.published if name not in PRINTED_TABLES}
    with one_line_errors():
        for name in rating.published:
            published_ratings(name)
    kept = [("--out", path) for path in files_of(options["out"])] if options["out"] is not None else []
    check_outputs([*files.items(), ("--html", html), *kept], read)
    with exit_on_interrupt(run.resume_hint), one_line_errors():
        verdicts = asyncio.run(run.verdicts(ctx.obj))
    if run.by:
        check_something_scored("no pair could be judged", Counter(pair.status for pair in verdicts.pairs))
    people = _human_votes(verdicts, human, run)
    found = leaderboard_of(verdicts, rating, people)
    shown, further = list(headline(found, rating)), list(optional_tables(found, rating))
    aside = [*run.notes, *verdicts.left_out.sentences("rows"), *_human_notes(found, people, human)]
    every_note = notes(found, rating, groups=True)
    written = [*every_note, *aside]
    if all_tables:
        show_tables([*shown, *further], every_note, aside)
    else:
        show_tables(shown, notes(found, rating, groups=False), [*aside, FURTHER_TABLES])
    write_tables(files, _document(run, found, rating), [*shown, *further], written)
    if html is not None:
        pages = leaderboard_pages(found, rating, written, source=run.source.short_name, by=run.by)
        write_page(html, pages, without="pair", quiet=options["quiet"])


def _rating_options(options: Mapping[str, Any]) -> RatingOptions:
    if "own-family" in options["controls"] and not options["model_families"].patterns:
        raise click.UsageError("--control own-family needs --model-family NAME=PATTERN with the judge and its models")
    given = {field.name: options[field.name] for field in fields(RatingOptions) if field.name in options}
    return RatingOptions(
        **{
            **given,
            "scale": RatingScale(options["elo_k"], options["elo_scale"], options["elo_start"]),
            "draws_over": draws_over_of(options),
        }
    )


def _run(options: Mapping[str, Any], rating: RatingOptions) -> LeaderboardRun:
    check_resume(options, options["out"])
    if options["max_pairs"] is not None and options["target_width"] is None:
        raise click.UsageError("--max-pairs needs --target-width. Give both")
    usual = click.get_current_context().get_parameter_source("by") is click.core.ParameterSource.DEFAULT
    mapped = named_columns("--map", options["columns"], {**PAIR_COLUMNS, **ALIASES, _OLD_GROUP: ()})
    of_pairs = {"group": mapped[_OLD_GROUP], **mapped} if _OLD_GROUP in mapped else mapped
    names = {name: (of_pairs[name],) if name in of_pairs else usual for name, usual in PAIR_COLUMNS.items()}
    of_answers = [f"{name}={column}" for name, column in mapped.items() if name in ALIASES]
    with one_line_errors():
        prompts = [read_prompt_file(path) for path in options["prompts"]]
    asking = options["judge"] or options["reference_as"] or options["target_width"]
    if options["scores"] and (is_comparison(options["by"]) or asking):
        raise click.UsageError(
            "--scores has a score for each answer, so it cannot be used with --by compare, --judge, --reference-as or "
            "--target-width. Leave one out"
        )
    source = input_file({**options, "columns": of_answers}, needed=("prediction",))
    reading = replace(source.reading, columns=(*source.reading.columns, *mapped.values()))
    return LeaderboardRun(
        options=options,
        source=replace(source, reading=reading),
        names=names,
        metrics=MetricOptions(
            metrics=options["by"], usual=usual, judge=options["judge"], prompts=prompts, retries=options["retries"]
        ),
        connection=connection_of(options),
        rating=rating,
    )


def _human_votes(verdicts: Verdicts, human: Path | None, run: LeaderboardRun) -> Verdicts | None:
    if human is None:
        # Skip pairs whose winner was derived from the votes, because such a winner always agrees with the votes.
        with_votes = [pair for pair in verdicts.pairs if pair.votes and not pair.by_votes]
        return votes_of(with_votes) if with_votes else None
    source = replace(run.source, paths=(str(human),))
    judged = source.judged_pairs
    if judged is None or next(judged.official_pairs(str(human)), None) is None:
        judged = source.plain
    read = Verdicts.read(judged.records(), run.names)
    found = votes_of(read.pairs)
    found.left_out.counts.update(read.left_out.counts)
    found.left_out.first |= read.left_out.first
    if not found.pairs:
        raise InputError(f"--human {human}: {'; '.join(found.left_out.sentences('rows')) or 'no votes'}")
    return found


def _human_notes(result: Leaderboard, people: Verdicts | None, human: Path | None) -> list[str]:
    if people is None:
        by_votes = sum(pair.by_votes for pair in result.verdicts.pairs)
        told = f"the winners of {by_votes} pairs come from annotators' votes, so there is no judge to compare with them"
        return [told] if by_votes else []
    left_out = people.left_out.sentences("rows of annotators")
    if result.people is None:
        return [*left_out, f"--human {human}: the leaderboard contains none of these pairs"]
    strata = result.people.strata
    counts = {
        "annotated pairs are skipped, because the judge returned no verdict": result.people.unmatched,
        "annotated pairs are skipped, because the judge names no winner": result.people.without_winner,
        "pairs have unknown lengths, so the baseline 'longer answer' is missing": result.people.without_words,
        "annotated pairs are skipped, because they have no majority": strata.no_majority,
        "annotated pairs are skipped, because the majority voted for a tie": strata.voted_tie,
    }
    return [*left_out, *(f"{number} {what}" for what, number in counts.items() if number)]


def _document(run: LeaderboardRun, result: Leaderboard, options: RatingOptions) -> dict[str, Any]:
    read, agree = result.verdicts.both_orders()
    ratings = result.ratings
    return {
        "file": run.source.name,
        "by": run.by,
        "pairs": len(result.verdicts.rated),
        "instructions": ratings.instructions,
        "left_out": dict(result.verdicts.left_out.counts),
        "without_winner": dict(result.verdicts.without_winner),
        "examples_without_winner": {
            status: [{"id": pair.id or pair.instruction, "at": pair.position, "models": pair.models} for pair in pairs]
            for status, pairs in result.verdicts.examples_without_winner.items()
        },
        "unrated_models": result.verdicts.unrated_models,
        "contradictory_orders": result.verdicts.contradictory,
        "lost_blank": result.verdicts.lost_blank,
        "both_orders": {"pairs": read, "same_winner": agree},
        "reference": options.reference,
        "anchor": options.anchor,
        "controls": list(options.controls),
        "model_families": {name: list(given) for name, given in options.model_families.patterns.items()},
        "scale": options.scale,
        "each_vote": options.each_vote,
        "bootstrap": described_draws(options.resamples, options.seed, unit=options.draws_over.removesuffix("s")),
        "regularised": ratings.regularised,
        "regularised_draws": ratings.regularised_draws,
        "models": ratings.models,
        "effects": ratings.effects,
        "wins": {"models": [line.model for line in ratings.models], "won": ratings.won.tolist()},
        "ties": ratings.tied.tolist(),
        "position_bias": result.position,
        "length_bias": result.length,
        "family_bias": result.own_family,
        "published": result.published,
        "groups": {group: table.models for group, table in result.groups.items()},
        "human": result.people,
    }
