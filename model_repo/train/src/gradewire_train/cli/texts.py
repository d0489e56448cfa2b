"""``gradewire models train texts``: what an encoder would be trained on, to look at or to keep."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradewire_models.errors import ModelError
from gradewire_train.examples import TASKS
from gradewire_train.examples import texts as texts_of

if TYPE_CHECKING:
    from gradewire_train.examples import Example

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _columns(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> Mapping[str, str]:
    pairs = [each.partition("=") for each in given]
    if wrong := [each for each, (name, _, field) in zip(given, pairs, strict=True) if not name or not field]:
        raise click.BadParameter(f"{wrong[0]!r}: OURS=YOURS is expected, as in answers=labels")
    return {name: field for name, _, field in pairs}


COLUMN_OPTION = click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="OURS=YOURS",
    callback=_columns,
    help="Your files' name for one of our fields: question, answer, answers, premise, hypothesis, label, anchor, "
    "positive, negative, negatives. Repeatable.",
)


@click.command()
@click.option("--task", "tasks", type=click.Choice(TASKS), multiple=True, help="Repeatable; without it all of them.")
@click.option("--count", type=click.IntRange(min=1), default=20, show_default=True, help="Examples of each task.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of everything that is drawn.")
@click.option(
    "--questions", type=_FILE, multiple=True, help="Your own VQA or QA set in JSON lines: question, answer or answers."
)
@click.option("--nli-pairs", "nli", type=_FILE, multiple=True, help="Your own pairs in JSON lines.")
@COLUMN_OPTION
@click.option("--skip-bad-lines", is_flag=True, help="Go on where a line of them cannot be read; they are counted.")
@click.option(
    "--wordnet",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of WordNet's files; without it $WNSEARCHDIR, $WNHOME/dict, else /usr/share/wordnet.",
)
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
    nli: tuple[Path, ...],
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
    except ImportError as error:
        raise click.ClickException(f"texts need more packages ({error}): pip install 'gradewire[train]'") from error
    counts = dict.fromkeys(tasks or TASKS, count)
    try:
        examples = make_examples(
            counts, seed=seed, wordnet=wordnet, questions=questions, nli=nli, columns=columns,
            skip_bad_lines=skip_bad_lines,
        )  # fmt: skip
    except ModelError as error:
        raise click.ClickException(str(error)) from error
    if out is None:
        for example in examples:
            _show(example)
    else:
        lines = (json.dumps(asdict(example), ensure_ascii=False) + "\n" for example in examples)
        out.write_text("".join(lines), encoding="utf-8")
    for task in counts:
        _count(task, [example for example in examples if example.task == task])
    click.echo(f"{len(examples)} examples, SHA-256 {examples_digest(examples)}")


def _show(example: "Example") -> None:
    click.echo(f"{example.task}: {example.question}" if example.question else f"{example.task}:")
    for sign, answer in (("=", example.anchor), ("+", example.positive), *(("-", each) for each in example.negatives)):
        click.echo(f"  {sign} {answer}")


def _count(task: str, examples: "list[Example]") -> None:
    read = [text for example in examples for text in texts_of(example)]
    words = sum(len(text.split()) for text in read) / len(read) if read else 0.0
    click.echo(f"{task}: {len(examples)} examples, {len(read)} texts of {words:.1f} words in the mean")
