"""Run ``gradewire models train sfve``."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from gradewire_models.repository.digest import file_sha256
from gradewire_train import TrainingError
from gradewire_train.batches import chosen, tasks_wanted
from gradewire_train.encoder import save_trained
from gradewire_train.examples import TASKS, Example, Files
from gradewire_train.recipes import Recipe, Texts
from gradewire_train.run.card import sfve_account, write_account
from gradewire_train.run.command import Request, base_encoder, run_training
from gradewire_train.run.loop import Plan, train
from gradewire_train.run.steps import Course, Outcome, StepReport
from gradewire_train.selection import LabelledRow, Selection, ensure_rankable, labelled_digest, read_labelled, sample
from gradewire_train.texts import make_examples
from gradewire_train.texts.files import read_examples

_SPLITS = {"a": " (fit split)", "b": " (held-out split)", None: ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class SfveRequest(Request):
    """The command's options."""

    files: Files
    examples_path: Path | None
    notice: str
    dev: Path | None
    dev_half: str | None
    dev_rows: int


def run(request: SfveRequest) -> bool:
    """Train an encoder; see `run_training`."""
    return run_training(request, Recipe, _Sfve)


class _Sfve:
    """An `sfve` encoder's `Work`."""

    def __init__(self, request: SfveRequest, recipe: Recipe, console: Console) -> None:
        if request.examples_path is not None:
            # The training generates no texts, so the stored recipe must not list any.
            recipe = replace(recipe, texts=Texts(**dict.fromkeys(TASKS, 0)))
        self._request, self._recipe = request, recipe
        self._rows = _labelled(request, recipe)
        console.print("making the texts")
        self._examples = chosen(_examples(request, recipe), recipe.only, recipe.without)
        training = recipe.training
        pooling = None if training.pooling == "base" else training.pooling
        self._encoder = base_encoder(request, training, training.max_tokens, console, pooling=pooling)

    def train(self, course: Course, report: Callable[[StepReport], None], stop: Callable[[], bool]) -> Outcome:
        selection = Selection(self._rows, self._encoder) if self._rows else None
        return train(self._encoder, Plan(self._recipe, self._examples, course, selection), report, stop)

    def save(self, directory: Path, outcome: Outcome) -> None:
        request, recipe, encoder = self._request, self._recipe, self._encoder
        account = sfve_account(encoder.base, recipe, self._examples, outcome, _dev_rows(request, self._rows))
        notice = f" --notice {shlex.quote(request.notice)}" if request.notice else ""
        account = replace(
            account,
            options=_options_of_texts(request) + notice + _options_of_dev(request) + request.device_option,
            remark=_remark(request, account.remark),
            files={path.name: file_sha256(path) for path in _own_files(request)},
        )
        save_trained(encoder, recipe.training, directory)
        write_account(directory, encoder.base, recipe, account, outcome.curve)

    def summary(self, outcome: Outcome) -> str:
        return f"step {outcome.best_step} of {self._recipe.training.steps}"


def _remark(request: SfveRequest, selected: str) -> str:
    labels = "the annotations in these files" if _own_files(request) else "no human labels"
    return f"The training used {labels}; {selected}{f'. {request.notice}' if request.notice else ''}"


def _labelled(request: SfveRequest, recipe: Recipe) -> list[LabelledRow]:
    if request.dev is None:
        return []
    rows = read_labelled(request.dev, half=request.dev_half)
    rows = sample(rows, count=request.dev_rows, seed=recipe.training.seed)
    ensure_rankable(rows, request.dev)
    return rows


def _dev_rows(request: SfveRequest, rows: list[LabelledRow]) -> str:
    if request.dev is None:
        return ""
    return f"{len(rows)} rows of {request.dev.name}{_SPLITS[request.dev_half]}, SHA-256 {labelled_digest(rows)[:12]}"


def _options_of_texts(request: SfveRequest) -> str:
    if request.examples_path is not None:
        return f" --examples {shlex.quote(request.examples_path.name)}"
    given = [("--questions", path.name) for path in request.files.questions]
    given += [("--nli-pairs", path.name) for path in request.files.nli_pairs]
    given += [("--column", f"{ours}={yours}") for ours, yours in request.files.columns.items()]
    given += [("--half", request.files.half)] if request.files.half else []
    skipping = " --skip-bad-lines" if request.files.skip_bad_lines else ""
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given) + skipping


def _options_of_dev(request: SfveRequest) -> str:
    # These options affect the selected step, so a repeated training needs them.
    if request.dev is None:
        return ""
    half = f" --dev-half {request.dev_half}" if request.dev_half else ""
    looks = f" --dev-rows {request.dev_rows} --evaluate-every {request.evaluate_every}"
    return f" --dev {shlex.quote(request.dev.name)}{half}{looks}"


def _own_files(request: SfveRequest) -> tuple[Path, ...]:
    if request.examples_path is not None:
        return (request.examples_path,)
    return (*request.files.questions, *request.files.nli_pairs)


def _examples(request: SfveRequest, recipe: Recipe) -> list[Example]:
    if request.examples_path is not None:
        return read_examples(request.examples_path)
    counts = {task: getattr(recipe.texts, task) for task in TASKS}
    wanted = tasks_wanted(recipe.only, recipe.without)
    left = [task for task in TASKS if task in wanted]
    if left and not any(counts[task] for task in left):
        raise TrainingError(
            f"texts: {', '.join(left)} all have 0 examples. Set a number under [texts] in "
            "--recipe, or choose different tasks with --only and --without"
        )
    return make_examples(counts, request.files, seed=recipe.training.seed, wordnet=request.wordnet, only=wanted)
