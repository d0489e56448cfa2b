"""The run of ``gradewire models train sfve``: reads, trains, shows progress, writes."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from gradewire_models.build.progress import ConsoleProgress
from gradewire_models.repository.digest import file_sha256
from gradewire_train.batches import chosen, tasks_wanted
from gradewire_train.encoder import load_base, save_trained
from gradewire_train.errors import TrainingError
from gradewire_train.examples import TASKS, Example, Files
from gradewire_train.recipes import Recipe, Texts, read_recipe, with_settings
from gradewire_train.run.card import sfve_account, write_account
from gradewire_train.run.checkpoint import begin_in
from gradewire_train.run.loop import Plan, train
from gradewire_train.run.staged import staged
from gradewire_train.run.steps import Course, TrainingConsole, first_interrupt
from gradewire_train.selection import (
    LabelledRow,
    Selection,
    ensure_rankable,
    labelled_digest,
    read_labelled,
    sample,
)
from gradewire_train.texts import make_examples
from gradewire_train.texts.files import read_examples

_SPLITS = {"a": " (fit split)", "b": " (held-out split)", None: ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command's options; `settings` are those of the recipe that were given."""

    directory: Path
    recipe_path: Path | None
    resume: bool
    files: Files
    wordnet: Path | None
    examples_path: Path | None
    dev: Path | None
    dev_half: str | None
    dev_rows: int
    evaluate_every: int
    checkpoint_every: int
    wheels: Path | None
    settings: Mapping[str, Any]


def run(request: Request) -> bool:
    """Trains, and writes the result into the directory.

    Returns:
        False where it was interrupted, and left a checkpoint.

    Raises:
        ModelError: Something cannot be read, fetched or trained; the message says what to do.
        OSError: The directory cannot be written.
    """
    console = Console(stderr=True)
    recipe = read_recipe(request.recipe_path, Recipe) if request.recipe_path else Recipe()
    recipe = with_settings(recipe, dict(request.settings))
    if request.examples_path is not None:
        # Nothing is made, so the recipe that is kept promises nothing.
        recipe = replace(recipe, texts=Texts(**dict.fromkeys(TASKS, 0)))
    rows = _labelled(request, recipe)
    checkpoint = begin_in(request.directory, resume=request.resume)
    console.print("making the texts", highlight=False)
    examples = chosen(_examples(request, recipe), recipe.only, recipe.without)
    with ConsoleProgress(console, recipe.training.base) as progress:
        encoder = load_base(
            recipe.training.base, max_tokens=recipe.training.max_tokens, wheels=request.wheels, report=progress.report
        )
    course = Course(
        directory=request.directory,
        evaluate_every=request.evaluate_every,
        checkpoint_every=request.checkpoint_every,
        resume=request.resume,
    )
    plan = Plan(recipe, examples, course, Selection(rows, encoder) if rows else None)
    with TrainingConsole(console, recipe.training.steps) as shown, first_interrupt(shown.stopping) as stop:
        outcome = train(encoder, plan, shown.report, stop)
    if not outcome.finished:
        console.print(
            f"stopped; go on with the same command and --resume (checkpoint in {request.directory})", highlight=False
        )
        return False
    account = replace(
        sfve_account(encoder.base, recipe, examples, outcome, _dev_rows(request, rows)),
        options=_options_of_texts(request) + _options_of_dev(request),
        files={path.name: file_sha256(path) for path in _own_files(request)},
    )
    with staged(request.directory) as fresh:
        save_trained(encoder, recipe.training, fresh)
        write_account(fresh, encoder.base, recipe, account, outcome.curve)
    checkpoint.unlink()
    console.print(
        f"step {outcome.best_step} of {recipe.training.steps}, {outcome.seconds:.0f} s: {request.directory}",
        highlight=False,
    )
    return True


def _labelled(request: Request, recipe: Recipe) -> list[LabelledRow]:
    if request.dev is None:
        return []
    rows = read_labelled(request.dev, half=request.dev_half)
    rows = sample(rows, count=request.dev_rows, seed=recipe.training.seed)
    ensure_rankable(rows, request.dev)
    return rows


def _dev_rows(request: Request, rows: list[LabelledRow]) -> str:
    if request.dev is None:
        return ""
    return f"{len(rows)} rows of {request.dev.name}{_SPLITS[request.dev_half]}, SHA-256 {labelled_digest(rows)[:12]}"


def _options_of_texts(request: Request) -> str:
    if request.examples_path is not None:
        return f" --examples {shlex.quote(request.examples_path.name)}"
    given = [("--questions", path.name) for path in request.files.questions]
    given += [("--nli-pairs", path.name) for path in request.files.nli_pairs]
    given += [("--column", f"{ours}={yours}") for ours, yours in request.files.columns.items()]
    skipping = " --skip-bad-lines" if request.files.skip_bad_lines else ""
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given) + skipping


def _options_of_dev(request: Request) -> str:
    # They decide which step is kept, so they are needed to make it again.
    if request.dev is None:
        return ""
    half = f" --dev-half {request.dev_half}" if request.dev_half else ""
    looks = f" --dev-rows {request.dev_rows} --evaluate-every {request.evaluate_every}"
    return f" --dev {shlex.quote(request.dev.name)}{half}{looks}"


def _own_files(request: Request) -> tuple[Path, ...]:
    if request.examples_path is not None:
        return (request.examples_path,)
    return (*request.files.questions, *request.files.nli_pairs)


def _examples(request: Request, recipe: Recipe) -> list[Example]:
    if request.examples_path is not None:
        return read_examples(request.examples_path)
    counts = {task: getattr(recipe.texts, task) for task in TASKS}
    wanted = tasks_wanted(recipe.only, recipe.without)
    left = [task for task in TASKS if task in wanted]
    if left and not any(counts[task] for task in left):
        raise TrainingError(
            f"texts: no example is asked for of {', '.join(left)} (each counts 0): give one a number under [texts] in "
            "--recipe, or name other tasks by --only and --without"
        )
    return make_examples(counts, request.files, seed=recipe.training.seed, wordnet=request.wordnet, only=wanted)
