"""``gradewire models train texts``: what an encoder would be trained on, to look at or to keep."""

from collections.abc import Mapping
from pathlib import Path

import click

from gradewire_models.cli.errors import MissingPackageError
from gradewire_models.errors import ModelError
from gradewire_train.examples import TASKS, Example
from gradewire_train.examples import texts as texts_of

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _columns(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> Mapping[str, str]:
    pairs = [each.partition("=") for each in given]
    if wrong := [each for each, (name, _, field) in zip(given, pairs, strict=True) if not name or not field]:
        raise click.BadParameter(f"{wrong[0]!r}: OURS=YOURS is expected, as in answers=labels")
    return {name: field for name, _, field in pairs}


QUESTIONS_OPTION = click.option(
    "--questions", type=FILE, multiple=True, help="Your own VQA or QA set in JSON lines: question, answer or answers."
)
# A setting of recipes is called nli.
NLI_OPTION = click.option("--nli-pairs", "nli_files", type=FILE, multiple=True, help="Your own pairs in JSON lines.")
SKIP_OPTION = click.option(
    "--skip-bad-lines", is_flag=True, help="Go on where a line of them cannot be read; they are counted."
)
COLUMN_OPTION = click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="OURS=YOURS",
    callback=_columns,
    help="Your files' name for one of our fields: question, answer, answers, premise, hypothesis, label, anchor, "
    "positive, negative, negatives. Repeatable.",
)

WORDNET_OPTION = click.option(
    "--wordnet",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of WordNet's files; without it $WNSEARCHDIR, $WNHOME/dict, else /usr/share/wordnet.",
)


@click.command()
@click.option("--task", "tasks", type=click.Choice(TASKS), multiple=True, help="Repeatable; without it all of them.")
@click.option("--count", type=click.IntRange(min=1), default=20, show_default=True, help="Examples of each task.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of everything that is drawn.")
@QUESTIONS_OPTION
@NLI_OPTION
@COLUMN_OPTION
@SKIP_OPTION
@WORDNET_OPTION
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write all examples there as JSON lines, which `train sfve --examples` reads, and print counts only.",
)
def texts(  # noqa: PLR0913, PLR0917 - one argument an option
    tasks: tuple[str, ...],
    count: int,
    seed: int,
    questions: tuple[Path, ...],
    nli_files: tuple[Path, ...],
    columns: Mapping[str, str],
    skip_bad_lines: bool,  # noqa: FBT001 - click passes flags so
    wordnet: Path | None,
    out: Path | None,
) -> None:
    """Show what is trained on: examples of each task, their counts, lengths and digest.

    Of every example the question, the answer (=), what means the same (+) and what does not (-). With your files it
    shows theirs first; the generator fills what is left. The same seed, files and version give the same texts.
    """
    try:
        from gradewire_train.texts import examples_digest, make_examples  # noqa: PLC0415 - takes a second
        from gradewire_train.texts.examples_file import write_examples  # noqa: PLC0415 - as above
    except ImportError as error:
        raise MissingPackageError(f"texts need more packages ({error}): pip install 'gradewire[train]'") from error
    counts = dict.fromkeys(tasks or TASKS, count)
    try:
        examples = make_examples(
            counts, seed=seed, wordnet=wordnet, questions=questions, nli=nli_files, columns=columns,
            skip_bad_lines=skip_bad_lines,
        )  # fmt: skip
    except ModelError as error:
        raise click.ClickException(str(error)) from error
    if out is None:
        for example in examples:
            _show(example)
    else:
        write_examples(examples, out)
    for task in counts:
        _count(task, [example for example in examples if example.task == task])
    click.echo(f"{len(examples)} examples, SHA-256 {examples_digest(examples)}")


def _show(example: Example) -> None:
    click.echo(f"{example.task}: {example.question}" if example.question else f"{example.task}:")
    for sign, answer in (("=", example.anchor), ("+", example.positive), *(("-", each) for each in example.negatives)):
        click.echo(f"  {sign} {answer}")


def _count(task: str, examples: list[Example]) -> None:
    read = [text for example in examples for text in texts_of(example)]
    words = sum(len(text.split()) for text in read) / len(read) if read else 0.0
    click.echo(f"{task}: {len(examples)} examples, {len(read)} texts of {words:.1f} words in the mean")
