"""The commands of ``gradewire models train``."""

import math
import re
from pathlib import Path
from typing import Any

import click
import cloup

from gradewire_models.catalog.loading import load_catalog
from gradewire_models.cli.help import CommandGroup, ExampleCommand, RareOption, rare_option
from gradewire_models.cli.options import WHEELS_OPTION, needs, without_traceback
from gradewire_train.cli_options import (
    FILE,
    FILES_OPTIONS,
    NOTICE_OPTION,
    WORDNET_OPTION,
    number_option,
    output_option,
    setting_options,
    train_as,
    training_imports,
    training_options,
)
from gradewire_train.examples import GROUPS, TASKS, Example, Files
from gradewire_train.examples import texts as texts_of
from gradewire_train.recipes import GraderRecipe, Recipe, shipped_graders


@click.command(cls=ExampleCommand, examples="  gradewire models train texts --task numbers --count 5")
@cloup.option_group(
    "Texts",
    click.option(
        "--task", "tasks", type=click.Choice(TASKS), multiple=True, help="Show this task. Repeatable; by default all."
    ),
    number_option("--count", 20, 1, "Show N examples of each task."),
    number_option("--seed", 1, 0, "Seed all random choices with N."),
    WORDNET_OPTION,
)
@FILES_OPTIONS
@cloup.option_group("Output", output_option("Write all examples", "`train sfve --examples`"))
def texts(  # noqa: PLR0913, PLR0917 - one argument per option
    tasks: tuple[str, ...], count: int, seed: int, files: Files, wordnet: Path | None, out: Path | None
) -> None:
    """Show training examples for the metric `sfve`.

    Each example has a question, an answer (=), an equivalent answer (+) and different answers (-). Examples from your
    files come first; the generator adds the rest. The command also prints each task's counts and lengths, and a digest.
    The same seed, files and version give the same texts.
    """
    with needs("train", "drawing texts"):
        from gradewire_train.texts import examples_digest, make_examples  # noqa: PLC0415 - a slow import
        from gradewire_train.texts.files import write_examples  # noqa: PLC0415 - a slow import
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


@click.command(
    "grader-texts",
    cls=ExampleCommand,
    examples="  gradewire models train grader-texts --kind unit --count 5\n"
    "  gradewire models train grader-texts --part eval --out rows.jsonl\n"
    "  gradewire models train grader-texts --change labelled.jsonl --count 100",
)
@cloup.option_group(
    "Rows",
    click.option("--kind", "kinds", multiple=True, help="Draw rows of this kind. Repeatable; by default all kinds."),
    number_option("--count", 10, 1, "Draw N rows of each kind; with --change, N rows in all."),
    number_option("--seed", 1, 0, "Seed all random choices with N."),
    click.option(
        "--part",
        type=click.Choice(["train", "eval"]),
        default="train",
        show_default=True,
        help="Draw rows for training or for evaluation. The two parts share no name, noun or long sentence. They share "
        'the formats of dates and numbers, and the few words for "yes", "no", "up" and "down".',
    ),
    rare_option(
        "--change",
        "changed",
        type=FILE,
        multiple=True,
        help="Draw no rows, but change the labelled answers in this file in one place, as `train grader` does with "
        "--counterfactual-rows. Repeatable.",
    ),
    rare_option(
        "--half",
        type=click.Choice(["a", "b"]),
        help="Change only answers whose question is in this half: a (to fit) or b (held out).",
    ),
    WORDNET_OPTION,
)
@cloup.option_group("Output", output_option("Write all rows", "`gradewire agree` and `calibrate`"))
def grader_texts(*, count: int, seed: int, wordnet: Path | None, out: Path | None, **given: Any) -> None:
    """Draw labelled rows for a grader.

    The answers are right or wrong by construction. Half of the rows of every kind are right: they have the reference's
    value in a different format, unit or wording. A wrong answer has a different value, name or noun in the same
    sentence, says the opposite, lists a wrong member, or evades the question. The same seed and version give the same
    rows.
    """
    if given["changed"] and (given["kinds"] or given["part"] != "train"):
        raise click.UsageError("--kind and --part choose drawn rows, and --change draws none. Leave out one of them")
    if given["half"] and not given["changed"]:
        raise click.UsageError("--half needs --change")
    with needs("train", "drawing texts"):
        from gradewire_train.graded.drawing import Drawer  # noqa: PLC0415 - a slow import
        from gradewire_train.rows.counterfactuals import counterfactuals  # noqa: PLC0415 - a slow import
        from gradewire_train.rows.labelled import read_rows  # noqa: PLC0415 - a slow import
        from gradewire_train.rows.shown import changed, drawn, show  # noqa: PLC0415 - a slow import
        from gradewire_train.texts.lexicon import Lexicon  # noqa: PLC0415 - a slow import
        from gradewire_train.texts.wordnet import WordNet, usual_directory  # noqa: PLC0415 - a slow import
    with without_traceback():
        lexicon = Lexicon(WordNet(wordnet or usual_directory()))
        if given["changed"]:
            read = [row for path in given["changed"] for row in read_rows(path, half=given["half"])]
            rows = [changed(row) for row in counterfactuals(read, count, lexicon, seed=seed)]
        else:
            drawer = Drawer(lexicon, given["part"])
            kinds = drawer.chosen(given["kinds"])
            rows = [drawn(row) for kind in kinds for row in drawer.rows(kind, count, seed=seed)]
    show(rows, out)


def _fold(_context: click.Context, _option: click.Parameter, given: str | None) -> tuple[int, int] | None:
    if given is None:
        return None
    parts = re.fullmatch(r"(\d+)/(\d+)", given)
    number, count = map(int, parts.groups()) if parts else (0, 0)
    if not 1 <= number <= count or count < 2:
        raise click.BadParameter(
            f"{given!r} must have the format K/N, for example 1/5, with K from 1 to N and N at least 2"
        )
    return number, count


def _earlier_grader(_context: click.Context, _option: click.Parameter, given: str | None) -> Path | None:
    if given is None or Path(given).is_dir():
        return None if given is None else Path(given)
    known = shipped_graders()
    if given not in known:
        raise click.BadParameter(f"{given} is neither a folder nor a grader of gradewire ({', '.join(known)})")
    return known[given]


def _finite(_context: click.Context, _option: click.Parameter, given: float) -> float:
    if not math.isfinite(given):
        raise click.BadParameter(f"{given} must be a finite number above 0; 1 leaves logits unchanged")
    return given


@click.command(
    cls=ExampleCommand,
    short_help="Train a grader for the metric `grader`.",
    examples="  gradewire models train grader --out runs/grader\n"
    "  gradewire models train grader --rows labelled.jsonl --recipe grader-mini --out runs/grader",
)
@training_options(GraderRecipe)
@cloup.option_group(
    "Rows",
    click.option(
        "--rows",
        type=FILE,
        multiple=True,
        help="Train on labelled rows in JSON lines: question, references, prediction, and label from 0 (wrong) to 1 "
        "(right), or labels of several annotators. Pairs that differ in one place (answer, changed, label) and "
        "sentence pairs (sentence1, sentence2, gold_label; also in tables with tabs) become rows, too. Repeatable. "
        "Sources (field dataset, or the file) get equal weights.",
    ),
    rare_option(
        "--half",
        type=click.Choice(["a", "b"]),
        help="Use only rows whose question is in this half: a (to fit) or b (held out).",
    ),
    rare_option(
        "--leave-out-fold",
        "left_out",
        metavar="K/N",
        callback=_fold,
        help="Leave out the questions in fold K of N, and write the logits of their rows to logits.jsonl.",
    ),
    rare_option(
        "--score",
        type=FILE,
        multiple=True,
        help="Do not train on these labelled rows, but write their logits to logits.jsonl. Repeatable.",
    ),
    WORDNET_OPTION,
)
@cloup.option_group(
    "Model",
    click.option(
        "--start",
        metavar="DIR|NAME",
        callback=_earlier_grader,
        help="Continue from an earlier grader: the --out folder of an earlier run, or a grader of gradewire "
        "(grader-start, from which grader-mini was made).",
    ),
    NOTICE_OPTION,
    rare_option(
        "--temperature",
        type=click.FloatRange(min=0, min_open=True),
        default=1.0,
        show_default=True,
        metavar="X",
        callback=_finite,
        help="Divide logits by X before they become probabilities.",
    ),
)
@setting_options(GraderRecipe)
def grader(**given: Any) -> None:
    """Train a grader, which reads the question, the reference and the answer together and scores the answer.

    Without --rows, train on drawn rows only (see `gradewire models train grader-texts`). The result is an adapter with
    a head. Build it with `gradewire models build --adapter OUT --name NAME all-MiniLM-L6-v2`. Press Ctrl-C to stop
    after the current step and leave a checkpoint; --resume continues from the checkpoint.
    """
    with training_imports():
        from gradewire_train.run.grader_run import GraderRequest, run  # noqa: PLC0415 - needs the extra
    train_as(GraderRequest, run, given)


def _trained_encoders(_context: click.Context, _argument: click.Parameter, given: tuple[str, ...]) -> tuple[Path, ...]:
    known = {
        name: each.adapter.directory
        for name, each in load_catalog().items()
        if each.adapter is not None and each.adapter.text_form == "sfve"
    }
    if wrong := [each for each in given if not Path(each).is_dir() and each not in known]:
        raise click.BadParameter(
            f"{wrong[0]} does not exist, neither as a folder nor in the catalog ({', '.join(known)})"
        )
    return tuple(Path(each) if Path(each).is_dir() else known[each] for each in given)


@click.command(
    cls=ExampleCommand,
    examples="  gradewire models train sfve --seed 1 --out runs/1\n"
    "  gradewire models train sfve --seed 2 --out runs/2\n"
    "  gradewire models train average runs/1 runs/2 --out runs/mean\n"
    "  gradewire models train average runs/mean sfve-mini --share 2 --share 3 --out runs/mixed",
)
@click.argument("directories", metavar="DIR|NAME...", nargs=-1, required=True, callback=_trained_encoders)
@cloup.option_group(
    "Mean",
    click.option(
        "--out",
        "directory",
        required=True,
        type=click.Path(file_okay=False, path_type=Path),
        help="Write the mean of the weights and its card into this folder.",
    ),
    click.option(
        "--share",
        "shares",
        type=float,
        multiple=True,
        metavar="X",
        help="Weight of a run in the mean, relative to the sum, once for each run in order. By default all are equal.",
    ),
    WHEELS_OPTION,
)
def average(directories: tuple[Path, ...], directory: Path, shares: tuple[float, ...], wheels: Path | None) -> None:
    """Average the weights that several runs of `train sfve` left in folders DIR.

    The runs have the same base, and usually differ in --seed. The mean often ranks answers better than most runs, and
    costs no more. NAME is an adapter of the catalog, such as sfve-mini. The result is an adapter or, if one of the runs
    has --method full, an encoder's folder.
    """
    with training_imports():
        from gradewire_train.run.average import average as averaged  # noqa: PLC0415 - needs the extra
    with without_traceback(OSError):
        averaged(directories, directory, shares=shares, wheels=wheels)


@click.group(cls=CommandGroup)
def train() -> None:
    """Train encoders for the metrics `sfve` and `grader`, and show their training material."""


train.add_command(texts)
train.add_command(grader_texts)
train.add_command(grader)
train.add_command(average)


@train.command(
    cls=ExampleCommand,
    examples="  gradewire models train sfve --recipe sfve-mini --out runs/sfve\n"
    "  gradewire models train sfve --questions vqa.jsonl --dev labelled.jsonl --out runs/sfve",
)
@training_options(Recipe)
@FILES_OPTIONS
@cloup.option_group(
    "Texts",
    rare_option(
        "--examples", "examples_path", type=FILE, help="Train only on these examples from `train texts --out`."
    ),
    rare_option(
        "--only", multiple=True, metavar="TASK", help=f"Train only on this task: {', '.join(TASKS)}. Repeatable."
    ),
    rare_option(
        "--without",
        multiple=True,
        metavar="TASK",
        help=f"Do not train on this task or group: {', '.join(GROUPS)}. Repeatable.",
    ),
    NOTICE_OPTION,
    WORDNET_OPTION,
)
@cloup.option_group(
    "Evaluation",
    click.option(
        "--dev",
        type=FILE,
        help="Select the best step by these labelled rows in JSON lines: question, references, prediction and label.",
    ),
    rare_option(
        "--dev-half",
        type=click.Choice(["a", "b"]),
        help="Use only dev rows with this value in the field half: a (to fit) or b (held out).",
    ),
    number_option("--dev-rows", 600, 0, "Use at most N dev rows; 0 means all.", RareOption),
    number_option("--evaluate-every", 100, 1, "Evaluate every N steps.", RareOption),
)
@setting_options(Recipe)
def sfve(**given: Any) -> None:
    """Train an encoder for the metric `sfve`.

    The encoder learns to tell equivalent answers from answers that only look alike. The training texts are made from
    WordNet, and also from your own questions and pairs if you add files. The result is an adapter (`gradewire models
    build --adapter OUT BASE`) or, with --method full, a folder (`gradewire models export OUT`). Press Ctrl-C to stop
    after the current step and leave a checkpoint; --resume continues from the checkpoint. A second Ctrl-C stops
    immediately, and the last checkpoint stays.
    """
    with training_imports():
        from gradewire_train.run.sfve_run import SfveRequest, run  # noqa: PLC0415 - needs the extra
    train_as(SfveRequest, run, given)
