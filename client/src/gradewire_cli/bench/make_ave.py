"""`gradewire bench make-ave`: make samples like AVE's, which `gradewire bench ave` reads, from graded answers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradewire_cli.bench.ave_making import MAX_WORDS, JudgedDescriptions, LabelledAnswer, make_samples, unfit
from gradewire_cli.bench.ave_shifts import WordForms
from gradewire_cli.lazy_commands import server_module
from gradewire_cli.options.common import INPUT_FILE, OUTPUT_FILE, everyday_quiet_option, seed_option
from gradewire_cli.options.connection import connection_of, connection_options
from gradewire_cli.options.help import command, option
from gradewire_cli.options.metrics import synthetic_generation
from gradewire_cli.problems import InputError, exit_on_interrupt, one_line_errors, tell
from gradewire_cli.results.journal import check_outputs
from gradewire_cli.results.progress import progress
from gradewire_cli.results.table_formats import write_text
from gradewire_cli.rows.cells import LeftOut
from gradewire_cli.rows.input_file import input_file, input_options, labelled_official_options
from gradewire_cli.scoring.plan import judge_notes

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from gradewire.references import PrepareProgress, SyntheticGeneration
    from gradewire.transport import Transport
    from gradewire_cli.bench.ave_making import MadeSamples
    from gradewire_cli.bench.ave_shifts import Thesaurus
    from gradewire_cli.options.connection import ConnectionOptions
    from gradewire_cli.rows.input_file import InputFile
    from gradewire_cli.rows.row import Row

# A metric without vectors, because only the judge's sentences are needed.
_CHEAPEST_METRIC = "exact_match"


@command("bench-make-ave")
@input_options
@labelled_official_options
@option("--where", multiple=True)
@option("--max-words", type=click.IntRange(min=1), default=MAX_WORDS)
@option("--wordnet", type=click.Path(exists=True, file_okay=False, path_type=Path))
@seed_option(0)
@option("--describe", is_flag=True)
@option("--judge")
@option("--prompt", type=INPUT_FILE)
@connection_options
@option("--out", type=OUTPUT_FILE, required=True)
@everyday_quiet_option
@click.pass_context
def make_ave_command(ctx: click.Context, /, **options: Any) -> None:
    """Make samples for `bench ave` from your own graded answers in FILE.

    Each short answer that matches no reference exactly becomes a sample with AVE's three parts: the answer itself,
    three sentences that describe it, and the references in another form. The same rows and seed give the same file.
    """
    for name in ("judge", "prompt"):
        if options[name] and not options["describe"]:
            raise click.UsageError(f"--{name} needs --describe")
    with one_line_errors():
        generation = synthetic_generation(options["judge"], options["prompt"]) if options["describe"] else None
    connection = connection_of(options)
    source = input_file(options, needed=("references", "prediction", "label"))
    out, quiet = options["out"], options["quiet"]
    check_outputs([("--out", out)], source.named_paths)
    words, thesaurus = WordForms(), _open_wordnet(options["wordnet"])
    left_out = LeftOut()
    with exit_on_interrupt(), one_line_errors():
        answers = list(_fitting(source, options["max_words"], left_out))
        tell(left_out.sentences("rows"))
        if not answers:
            raise InputError(f"{source.name} has no answer that fits a sample. The reasons are above")
        judged = None
        if generation is not None:
            judged = asyncio.run(_descriptions(answers, generation, connection, ctx.obj, quiet=quiet))
        with progress("making samples", len(answers), quiet=quiet) as shown:
            found = make_samples(
                answers,
                words=words,
                thesaurus=thesaurus,
                seed=options["seed"],
                judged=judged,
                done=lambda rows: shown(rows, ""),
            )
        write_text(out, "".join(f"{json.dumps(row.columns, ensure_ascii=False)}\n" for row in found.rows))
    if not quiet:
        tell(_sentences(found))
        click.echo(f"{len(found.rows)} samples written to {out}", err=True)


def _open_wordnet(named: Path | None) -> Thesaurus:
    lexicon = server_module("gradewire_server.lexicon")
    settings = server_module("gradewire_server.settings.server").Settings.load()
    directory: Path = named or settings.engine.wordnet_directory or lexicon.usual_directory()
    try:
        thesaurus: Thesaurus = lexicon.WordNet(directory.expanduser())
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read WordNet's files in {directory} ({error}). Install them (Debian: apt-get install "
            "wordnet-base), or name their directory with --wordnet"
        ) from error
    return thesaurus


def _fitting(source: InputFile, max_words: int, left_out: LeftOut) -> Iterator[LabelledAnswer]:
    """Yield the answers that make a sample, and count the others by reason."""
    opened = source.open_with_rows()
    tell(opened.notes)
    for row in opened.rows:
        answer = _answer(row)
        reason = "the label or a text is missing" if answer is None else unfit(answer, max_words)
        if answer is None or reason:
            left_out.add(reason, row.position)
        else:
            yield answer
    tell(opened.late_notes)


def _answer(row: Row) -> LabelledAnswer | None:
    item = row.item or {}
    given = item.get("references", [])
    references = [text for text in given if isinstance(text, str) and text.strip()]
    prediction, question = item.get("prediction"), item.get("question", "")
    whole = bool(references) and len(references) == len(given)
    if not whole or not isinstance(prediction, str) or not isinstance(question, str) or row.human.value is None:
        return None
    # A data URI is a whole picture, so the key that is made from it stands in for it.
    by_key = row.picture.startswith("data:") and not row.question_id
    told_apart = {"question_id": row.question_key} if by_key else {"question_id": row.question_id, "image": row.picture}
    return LabelledAnswer(
        id=row.id,
        question=question,
        references=tuple(references),
        prediction=prediction,
        label=row.human.value,
        dataset=row.dataset,
        told_apart={name: value for name, value in told_apart.items() if value},
    )


async def _descriptions(
    answers: Sequence[LabelledAnswer],
    generation: SyntheticGeneration,
    connection: ConnectionOptions,
    transport: Transport | None,
    *,
    quiet: bool,
) -> JudgedDescriptions:
    """Have the judge write a sentence for each answer, in the same way as for a reference before SMILE scores."""
    texts = list(dict.fromkeys((answer.question, answer.prediction) for answer in answers))
    entries = [{"question": question, "references": [prediction]} for question, prediction in texts]
    async with connection.open(transport) as client:
        if not quiet:
            tell(judge_notes(await client.models(), {generation.judge.partition("@")[0]}))
        with progress("writing descriptions", len(texts), quiet=quiet) as shown:

            def show(step: PrepareProgress) -> None:
                shown(step.entries_done, "")

            report = await client.prepare(entries, metrics=[_CHEAPEST_METRIC], generate=generation, progress=show)
    failed = {failure.index: f"{failure.status} {failure.message}" for failure in (*report.failures, *report.fallbacks)}
    written = {
        texts[index]: str(sentences[0])
        for index, sentences in report.synthetic_answers.items()
        if index not in failed and sentences[0] not in {None, texts[index][1]}
    }
    if failed:
        index, reason = min(failed.items())
        first = f"the first is {texts[index][1]!r}: {reason}"
        click.echo(
            f"the judge described {len(written)} of {len(texts)} answers; templates do the rest ({first})", err=True
        )
    return JudgedDescriptions(written, report.generation.line if report.generation is not None else generation.judge)


def _sentences(found: MadeSamples) -> Iterator[str]:
    yield f"descriptions: {_counts(found.forms)}"
    yield f"references: {_counts(found.shifts)}; {found.kept_rows} samples keep all references"


def _counts(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counted.most_common())
