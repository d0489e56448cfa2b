"""The commands of ``gradewire models train``."""

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import reduce
from pathlib import Path
from typing import Any, get_args

import click

from gradewire_models.cli.options import WHEELS_OPTION, Command, grouped, needs, without_traceback
from gradewire_proto.exit_codes import ExitCode
from gradewire_train.examples import GROUPS, TASKS, Example, Files
from gradewire_train.examples import texts as texts_of
from gradewire_train.recipes import GraderRecipe, Recipe, option, sections, settings_of, shipped_recipes

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

WORDNET_OPTION = click.option(
    "--wordnet",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of WordNet's files; by default $WNSEARCHDIR, $WNHOME/dict or /usr/share/wordnet.",
)


def setting_options(recipe: type) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of a kind of recipe, each with its description as help."""

    def add(command: Command) -> Command:
        for table, kind in reversed(sections(recipe).items()):
            for name, info in reversed(settings_of(kind).items()):
                choices, several = get_args(info.annotation), info.default == ()
                value = str if several else click.Choice(choices) if choices else type(info.default)
                command = click.option(
                    option(name),
                    name,
                    type=value,
                    multiple=several,
                    help=f"{info.description}  [recipe: {table}.{name}, default {'all' if several else info.default}]",
                )(command)
        return command

    return add


def training_options(recipe: type) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of every training except its settings."""
    options = (
        click.option(
            "--out",
            "directory",
            required=True,
            type=click.Path(file_okay=False, path_type=Path),
            help="Folder for checkpoints, and later for the trained weights with their card.",
        ),
        _recipe_option(recipe),
        click.option(
            "--resume",
            is_flag=True,
            help="Continue from the checkpoint in --out; the weights will be the same bit for bit.",
        ),
        click.option(
            "--checkpoint-every",
            type=click.IntRange(min=1),
            default=100,
            show_default=True,
            help="Steps between checkpoints.",
        ),
        WHEELS_OPTION,
    )
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def _recipe_option(recipe: type) -> Callable[[Command], Command]:
    """Return the option ``--recipe``: a file, or the name of a shipped recipe of a kind."""
    shipped = shipped_recipes(recipe)

    def path(_context: click.Context, _option: click.Parameter, value: str | None) -> Path | None:
        if value is None or Path(value).is_file():
            return None if value is None else Path(value)
        if value not in shipped:
            raise click.BadParameter(f"{value!r} is neither a file nor a recipe of gradewire ({', '.join(shipped)})")
        return shipped[value]

    found: Callable[[Command], Command] = click.option(
        "--recipe",
        "recipe_path",
        metavar="FILE|NAME",
        callback=path,
        help=f"TOML file with any of the settings below, or the name of a recipe: {', '.join(shipped)}. "
        "Options override it.",
    )
    return found


@contextmanager
def training_imports() -> Iterator[None]:
    """Enter a context for imports of a training.

    Raises:
        MissingPackageError: The extra `train` is not installed.
    """
    # Training never talks to a hub. The libraries read this variable when they are imported.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with needs("train", "training"):
        yield


def train_as(request: type[Any], run: Callable[[Any], bool], given: dict[str, Any]) -> None:
    """Train with a command's options: the fields of `request`, and all others as settings.

    Raises:
        click.ClickException: The training failed; the message says what to do.
        click.exceptions.Exit: The training was interrupted, and left a checkpoint.
    """
    own = {each.name: given.pop(each.name) for each in fields(request) if each.name in given}
    # Repeatable options are an empty tuple by default.
    settings = {name: value for name, value in given.items() if value is not None and value != ()}
    with without_traceback(OSError):
        finished = run(request(**own, settings=settings))
    if not finished:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED)


def _columns(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> Mapping[str, str]:
    pairs = [each.partition("=") for each in given]
    if wrong := [each for each, (name, _, field) in zip(given, pairs, strict=True) if not name or not field]:
        raise click.BadParameter(f"{wrong[0]!r} should have the form OURS=YOURS, as in answers=labels")
    return {name: field for name, _, field in pairs}


FILES_OPTIONS = grouped(
    "files",
    Files,
    click.option(
        "--questions",
        type=FILE,
        multiple=True,
        help="Your own VQA or QA set in JSON lines: question, and answer or answers.",
    ),
    # `nli` is already the name of a setting.
    click.option("--nli-pairs", type=FILE, multiple=True, help="Your own pairs in JSON lines."),
    click.option("--skip-bad-lines", is_flag=True, help="Skip and count lines of these files that cannot be read."),
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="OURS=YOURS",
        callback=_columns,
        help="Your files' name for one of our fields; repeatable. Fields: question, answer, answers, premise, "
        "hypothesis, label, anchor, positive, negative, negatives.",
    ),
)


@click.command()
@click.option(
    "--task", "tasks", type=click.Choice(TASKS), multiple=True, help="Task to show; repeatable. By default all of them."
)
@click.option("--count", type=click.IntRange(min=1), default=20, show_default=True, help="Examples of each task.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of all random choices.")
@FILES_OPTIONS
@WORDNET_OPTION
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write all examples to this file as JSON lines for `train sfve --examples`, and print only counts.",
)
def texts(  # noqa: PLR0913, PLR0917 - one argument per option
    tasks: tuple[str, ...], count: int, seed: int, files: Files, wordnet: Path | None, out: Path | None
) -> None:
    """Show training material: examples of each task, their counts, lengths and digest.

    Shows the question of every example, the answer (=), an equivalent answer (+) and different ones (-). Examples from
    your files come first; the generator adds the rest. The same seed, files and version give the same texts.
    """
    with needs("train", "drawing texts"):
        from gradewire_train.texts import examples_digest, make_examples  # noqa: PLC0415 - takes a second
        from gradewire_train.texts.files import write_examples  # noqa: PLC0415 - as above
    counts = dict.fromkeys(tasks or TASKS, count)
    with without_traceback():
        examples = make_examples(counts, files, seed=seed, wordnet=wordnet)
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
    click.echo(f"{task}: {len(examples)} examples, {len(read)} texts of {words:.1f} words on average")


@click.command("grader-texts")
@click.option("--kind", "kinds", multiple=True, help="Kind of rows to draw; repeatable. By default all of them.")
@click.option("--count", type=click.IntRange(min=1), default=10, show_default=True, help="Rows of each kind.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of all random choices.")
@click.option(
    "--part",
    type=click.Choice(["train", "eval"]),
    default="train",
    show_default=True,
    help="Part for training or for evaluation; they share no name, noun or long sentence, only forms of dates and "
    "numbers, and the few words for yes, no, up and down.",
)
@WORDNET_OPTION
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write all rows to this file as JSON lines for `gradewire agree` and `calibrate`, and print only counts.",
)
def grader_texts(  # noqa: PLR0913, PLR0917 - one argument per option
    kinds: tuple[str, ...], count: int, seed: int, part: str, wordnet: Path | None, out: Path | None
) -> None:
    """Draw labelled rows: questions, references, and answers that are right or wrong by construction.

    Half of the rows of every kind are right: the same value in another form, unit or wording. The others have another
    value, name or noun in the same sentence, an opposite, a list with another member, or an evasive answer. The same
    seed and version give the same rows.
    """
    with needs("train", "drawing texts"):
        from gradewire_train.graded.drawing import Drawer, rows_digest  # noqa: PLC0415 - takes a second
        from gradewire_train.texts.lexicon import Lexicon  # noqa: PLC0415 - as above
        from gradewire_train.texts.wordnet import WordNet, usual_directory  # noqa: PLC0415 - as above
    with without_traceback():
        drawer = Drawer(Lexicon(WordNet(wordnet or usual_directory())), "eval" if part == "eval" else "train")
        wanted = kinds or drawer.kinds
        if unknown := sorted(set(wanted) - set(drawer.kinds)):
            raise click.BadParameter(f"--kind: this part has no kind {unknown[0]!r}. It has {', '.join(drawer.kinds)}")
        rows = [row for kind in wanted for row in drawer.rows(kind, count, seed=seed)]
    if out is None:
        for row in rows:
            sign = "+" if row.drawn.right else "-"
            click.echo(f"{row.kind}: {row.drawn.question}\n  = {' | '.join(row.drawn.references)}")
            click.echo(f"  {sign} {row.drawn.prediction}")
    else:
        out.write_text("".join(f"{row.json()}\n" for row in rows), encoding="utf-8")
    for kind in wanted:
        own = [row.drawn for row in rows if row.kind == kind]
        words = sum(len(drawn.prediction.split()) for drawn in own) / max(1, len(own))
        right = sum(drawn.right for drawn in own)
        click.echo(f"{kind}: {len(own)} rows, {right} of them right, answers of {words:.1f} words on average")
    click.echo(f"{len(rows)} rows, SHA-256 {rows_digest(rows)}")


def _fold(_context: click.Context, _option: click.Parameter, given: str | None) -> tuple[int, int] | None:
    if given is None:
        return None
    parts = re.fullmatch(r"(\d+)/(\d+)", given)
    number, count = map(int, parts.groups()) if parts else (0, 0)
    if not 1 <= number <= count or count < 2:
        raise click.BadParameter(f"{given!r} should have the form K/N, as in 1/5, with K from 1 to N and N at least 2")
    return number, count


def _finite(_context: click.Context, _option: click.Parameter, given: float) -> float:
    if not math.isfinite(given):
        raise click.BadParameter(f"{given} should be a finite number above 0; 1 leaves logits unchanged")
    return given


@click.command()
@training_options(GraderRecipe)
@click.option(
    "--rows",
    type=FILE,
    multiple=True,
    help="Labelled rows in JSON lines: question, references, prediction, and label from 0 (wrong) to 1 (right), or "
    "labels of several annotators. Sources (the field dataset, or the file) get equal weights. Repeatable.",
)
@click.option(
    "--half",
    type=click.Choice(["a", "b"]),
    help="Use only rows whose question is in this split: a, to fit, or b, held out.",
)
@click.option(
    "--leave-out-fold",
    "left_out",
    metavar="K/N",
    callback=_fold,
    help="Leave out the questions of fold K of N, and write the logits of their rows to logits.jsonl.",
)
@click.option(
    "--score",
    type=FILE,
    multiple=True,
    help="Labelled rows that are not trained on, but get logits in logits.jsonl. Repeatable.",
)
@click.option(
    "--start",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Continue from an earlier grader: the --out folder of this command.",
)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    callback=_finite,
    help="Divisor of logits before they become probabilities.",
)
@WORDNET_OPTION
@setting_options(GraderRecipe)
def grader(**given: Any) -> None:
    """Train a grader: an encoder that reads question, reference and answer together and scores the answer.

    Without --rows it trains on drawn rows only (`gradewire models train grader-texts` shows them). The result is an
    adapter with a head (``gradewire models build --adapter OUT --name NAME all-MiniLM-L6-v2``). Ctrl-C stops after the
    current step and leaves a checkpoint; --resume continues from it.
    """
    with training_imports():
        from gradewire_train.run.grader_run import GraderRequest, run  # noqa: PLC0415 - needs the extra, takes seconds
    train_as(GraderRequest, run, given)


@click.group()
def train() -> None:
    """Train encoders for the metrics `sfve` and `grader`, and show their training material."""


train.add_command(texts)
train.add_command(grader_texts)
train.add_command(grader)


@train.command()
@training_options(Recipe)
@FILES_OPTIONS
@WORDNET_OPTION
@click.option(
    "--examples", "examples_path", type=FILE, help="Ready examples in JSON lines; no other source is read then."
)
@click.option(
    "--dev", type=FILE, help="JSON lines with question, references, prediction and label, to select the best step."
)
@click.option(
    "--dev-half",
    type=click.Choice(["a", "b"]),
    help="Use only dev rows of this split (field half): a, to fit, or b, held out.",
)
@click.option(
    "--dev-rows", type=click.IntRange(min=0), default=600, show_default=True, help="Most dev rows to use; 0 for all."
)
@click.option(
    "--evaluate-every", type=click.IntRange(min=1), default=100, show_default=True, help="Steps between evaluations."
)
@click.option("--only", multiple=True, metavar="TASK", help=f"Train only on this task: {', '.join(TASKS)}. Repeatable.")
@click.option("--without", multiple=True, metavar="TASK", help=f"Leave out this task or group: {', '.join(GROUPS)}.")
@setting_options(Recipe)
def sfve(**given: Any) -> None:
    """Train an encoder for SFVE by contrast: equivalent answers against answers that only look alike.

    Without files it trains on texts made from WordNet; your own questions and pairs are added. The result is an adapter
    (``gradewire models build --adapter OUT BASE``) or, with --method full, a folder (``gradewire models export OUT``).
    Ctrl-C stops after the current step (and its evaluation on --dev) and leaves a checkpoint; --resume continues from
    it. A second Ctrl-C stops at once; the last checkpoint stays.
    """
    with training_imports():
        from gradewire_train.run.sfve_run import SfveRequest, run  # noqa: PLC0415 - needs the extra and takes seconds
    train_as(SfveRequest, run, given)
