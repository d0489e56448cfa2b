"""`gradewire prepare`: prepare a file's references before answers arrive."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import click

from gradewire import AsyncClient
from gradewire.references import EntryFailure, PrepareProgress, PrepareReport, SyntheticGeneration
from gradewire_cli.options.common import INPUT_FILE, OUTPUT_FILE, everyday_quiet_option
from gradewire_cli.options.connection import connection_of, connection_options
from gradewire_cli.options.help import command, option, stacked
from gradewire_cli.options.metrics import MetricOptions, is_usual, metric_options, metrics_help, synthetic_generation
from gradewire_cli.problems import InputError, exit_on_interrupt, one_line_errors, tell
from gradewire_cli.results.journal import check_outputs, replacing
from gradewire_cli.results.progress import progress
from gradewire_cli.rows.input_file import InputFile, input_file, input_options
from gradewire_cli.scoring.corpus import FileReferences, over_a_file
from gradewire_cli.scoring.plan import judge_notes, written_metrics
from gradewire_proto.exit_codes import ExitCode

generate_options = stacked(
    option("--generate", is_flag=True),
    option("--judge"),
    option("--prompt", type=INPUT_FILE),
    option("--out", type=OUTPUT_FILE),
    option("--overwrite", is_flag=True),
    option("--immutable", is_flag=True),
    everyday_quiet_option,
)
_SHOWN_FAILURES = 10


def generation_of(options: Mapping[str, Any]) -> SyntheticGeneration | None:
    """Read `generate_options`. Return None without --generate."""
    judge, prompt, out = options["judge"], options["prompt"], options["out"]
    if not options["generate"]:
        given = {"--judge": judge, "--prompt": prompt, "--out": out, "--overwrite": options["overwrite"]}
        for name, value in given.items():
            if value:
                raise click.UsageError(f"{name} needs --generate")
        return None
    if options["overwrite"] and out is None:
        raise click.UsageError("--overwrite needs --out FILE")
    return synthetic_generation(judge, prompt)


def check_output(out: Path, source: InputFile, *, overwrite: bool) -> None:
    """Raise InputError if the output cannot be written."""
    if source.is_stdin:
        raise InputError("--out reads the rows twice, which standard input does not allow. Save the input to a file")
    check_outputs([("--out", out), ("--out", _part_of(out))], source.named_paths)
    if out.exists() and not overwrite:
        raise InputError(f"{out} exists. Use --overwrite or another --out FILE")


def sentences_so_far(step: PrepareProgress, seconds: float) -> str:
    """Return the progress text for generated sentences."""
    rate = step.synthetic_answers_generated / max(seconds, 1e-9)
    line = f"{step.synthetic_answers_generated} sentences, {rate:.2g}/s"
    fallbacks = step.synthetic_answers_fallback
    return f"{line}, {fallbacks} fallback{'s' * (fallbacks != 1)}" if fallbacks else line


def write_rows(path: Path, source: InputFile, answers: Mapping[int, tuple[str | None, ...]]) -> str:
    """Write a file's rows, and return a sentence with the numbers of written, copied and skipped rows.

    Each row gets all of its synthetic answers, or none of them if one is missing.
    """
    column = source.options.columns.get("synthetic_answers", "synthetic_answers")
    whole = unread = left_out = rows = 0
    try:
        with replacing(path, unfinished=_part_of(path)) as part, part.open("wb") as stream:
            for record in source.records():
                found = answers.get(record.index, ())
                if record.fields is not None:
                    complete = bool(found) and None not in found
                    fields = {name: value for name, value in record.fields.items() if name not in record.nested}
                    fields |= {column: list(found)} if complete else {}
                    line = json.dumps(fields, ensure_ascii=False, default=str).encode()
                    whole += complete
                elif source.is_json:
                    line = record.raw.rstrip("\r\n").encode(errors="surrogateescape")
                    unread += 1
                else:
                    left_out += 1
                    continue
                stream.write(line + b"\n")
                rows += 1
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a string is not valid Unicode"
        raise InputError(
            f"{path}: {reason or error}. The reference set has the answers. To write the file, run the command again"
        ) from error
    sentences = [f"{rows} rows, {whole} of them with synthetic answers"]
    if unread:
        sentences.append(f"{unread} unreadable rows copied unchanged")
    if left_out:
        sentences.append(f"skipped {left_out} unreadable rows of the input")
    return "; ".join(sentences)


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


@command("prepare", failed_rows="some rows could not be prepared", metrics=metrics_help())
@input_options
@metric_options
@generate_options
@connection_options
@click.pass_context
def prepare_command(ctx: click.Context, /, **options: Any) -> None:
    """Prepare the references in FILE before answers arrive: embed them, store synthetic answers, and count words.

    The command prints the reference set's name, which is a hash of its content. Equal references get the same name.
    """
    if options["reference_set"] is not None:
        raise click.UsageError("Leave out --reference-set: prepare derives the name from the content")
    with one_line_errors():
        generation = generation_of(options)
    connection = connection_of(options)
    source = input_file(options, needed=("references",))
    out = options["out"]
    if out is not None:
        check_output(out, source, overwrite=options["overwrite"])
    options["usual"] = is_usual(options["metrics"])
    deadline_given = ctx.get_parameter_source("deadline_s") is not click.core.ParameterSource.DEFAULT
    with exit_on_interrupt(lambda: "interrupted; run the same command to continue"), one_line_errors():
        found = FileReferences.read(source)
        tell(found.notes)
        opening = connection.open(ctx.obj)
        deadline_s = connection.deadline_s if deadline_given else None
        report = asyncio.run(_prepared(opening, found, options, generation, deadline_s))
    problems = [*found.problems, *_failure_lines(found, report.failures)]
    if out is not None:
        answers = {row: report.synthetic_answers.get(entry, ()) for row, entry in found.entry_of.items()}
        outcome = write_rows(out, source, answers)
        if not options["quiet"]:
            click.echo(f"{out}: {outcome}", err=True)
    if not options["quiet"]:
        _print_report(found, report, problems)
    click.echo(report.pinned)
    if problems or _uses_only_references(found, report):
        ctx.exit(ExitCode.FAILED)


def _uses_only_references(found: FileReferences, report: PrepareReport) -> bool:
    """Return True if every reference serves as its own synthetic answer, because the judge wrote nothing usable."""
    return bool(report.fallbacks) and all(
        {*answers} <= {None, *found.entries[entry]["references"]} for entry, answers in report.synthetic_answers.items()
    )


def _failure_lines(found: FileReferences, failures: Sequence[EntryFailure]) -> list[str]:
    return [f"{found.positions[failure.index]}: {failure.status} {failure.message}" for failure in failures]


async def _prepared(
    connection: AbstractAsyncContextManager[AsyncClient],
    found: FileReferences,
    options: Mapping[str, Any],
    generation: SyntheticGeneration | None,
    deadline_s: float | None,
) -> PrepareReport:
    names = ("metrics", "preset", "synthetic", "model")
    named = MetricOptions(**{name: options[name] for name in names}, usual=options["usual"])
    quiet = options["quiet"]
    prepared = found.has_synthetic or generation is not None
    began = time.monotonic()
    async with connection as client:
        metrics = await written_metrics(client, named, lambda: found.entries, quiet=quiet)
        if generation is not None and not quiet:
            tell(judge_notes(await client.models(), {generation.judge.partition("@")[0]}))
        with progress("preparing", len(found.entries), quiet=quiet) as shown:

            def show(step: PrepareProgress) -> None:
                note = sentences_so_far(step, time.monotonic() - began) if generation is not None else ""
                shown(step.entries_done, note)

            return await client.prepare(
                found.entries,
                metrics=[over_a_file(metric) for metric in metrics],
                preset=named.preset,
                synthetic=named.synthetic or ("prepared" if prepared else "none"),
                model=named.model,
                generate=generation or False,
                immutable=options["immutable"],
                deadline_s=deadline_s,
                progress=show,
            )


def _print_report(found: FileReferences, report: PrepareReport, problems: list[str]) -> None:
    hits = report.cache_hits
    before = hits.memory + hits.disk + hits.redis
    click.echo(
        f"{len(found.entries)} reference lists in {found.rows} rows: {hits.computed} texts encoded, "
        f"{before} already cached, {report.synthetic_answers_stored} synthetic answers stored",
        err=True,
    )
    if (writer := report.generation) is not None:
        click.echo(f"{report.synthetic_answers_generated} of these answers written now, by {writer.line}", err=True)
    _print_some("uses the reference itself", _failure_lines(found, report.fallbacks))
    _print_some("not prepared", problems)


def _print_some(what: str, problems: Sequence[str]) -> None:
    tell(f"{what}: {problem}" for problem in problems[:_SHOWN_FAILURES])
    if len(problems) > _SHOWN_FAILURES:
        click.echo(f"{what}: {len(problems) - _SHOWN_FAILURES} more", err=True)
