"""The run of ``gradewire models train grader``: reads and draws rows, trains, shows progress, writes."""

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from gradewire_models.build.progress import ConsoleProgress
from gradewire_models.catalog.entries import ADAPTER_WEIGHTS
from gradewire_models.repository.digest import file_sha256
from gradewire_models.repository.grader_input import MAX_TOKENS
from gradewire_stats.calibration.labelled_rows import Half
from gradewire_train.encoder import Base, load_base
from gradewire_train.errors import TrainingError
from gradewire_train.graded.drawing import Drawer
from gradewire_train.grader_rows import DRAWN, GraderRow, drawn_row, fold_of, read_rows, rows_digest
from gradewire_train.recipes import GraderRecipe, read_recipe, with_settings
from gradewire_train.run.card import Account, write_account
from gradewire_train.run.checkpoint import begin_in
from gradewire_train.run.grader_model import Grader, GraderTokenizer, Judgement, row_logits
from gradewire_train.run.staged import staged
from gradewire_train.run.steps import Course, Steps, TrainingConsole, deterministic, first_interrupt
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.wordnet import WordNet, usual_directory

LOGITS_FILE = "logits.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Rows that are left out: those whose question is in fold `number` (from 1) of `count`."""

    number: int
    count: int

    def has(self, row: GraderRow) -> bool:
        """Whether a row is left out."""
        return fold_of(row.question, self.count) == self.number - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command's options; `settings` are those of the recipe that were given."""

    directory: Path
    recipe_path: Path | None
    resume: bool
    rows: tuple[Path, ...]
    half: Half | None
    left_out: Fold | None
    score: tuple[Path, ...]
    start: Path | None
    temperature: float
    wordnet: Path | None
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
    recipe = read_recipe(request.recipe_path, GraderRecipe) if request.recipe_path else GraderRecipe()
    recipe = with_settings(recipe, dict(request.settings))
    # Everything is read before anything is trained.
    given = [row for path in request.rows for row in read_rows(path, half=request.half)]
    scored = [row for path in request.score for row in read_rows(path)]
    checkpoint = begin_in(request.directory, resume=request.resume)
    console.print("drawing rows", highlight=False)
    every = [*_drawn(request, recipe), *given]
    rows = [row for row in every if request.left_out is None or not request.left_out.has(row)]
    out = [row for row in every if request.left_out is not None and request.left_out.has(row)]
    if not rows:
        raise TrainingError("no row is left to train on: give --rows, or a drawn_rows above 0")
    training = recipe.training
    deterministic(training)
    with ConsoleProgress(console, training.base) as progress:
        encoder = load_base(training.base, max_tokens=MAX_TOKENS, wheels=request.wheels, report=progress.report)
    tokenizer = GraderTokenizer(encoder.tokenizer)
    grader = Grader(encoder, training)
    started = ""
    if request.start is not None:
        grader.start_from(request.start)
        started = file_sha256(request.start / ADAPTER_WEIGHTS)
    course = Course(
        directory=request.directory, evaluate_every=0, checkpoint_every=request.checkpoint_every, resume=request.resume
    )
    identity = training_identity(recipe, encoder.base.weights_sha256 + started, rows)
    steps = Steps(Judgement(grader, tokenizer, rows, recipe), training, identity, course)
    with TrainingConsole(console, training.steps) as shown, first_interrupt(shown.stopping) as stop:
        outcome = steps.go(shown.report, stop)
    if not outcome.finished:
        console.print(
            f"stopped; go on with the same command and --resume (checkpoint in {request.directory})", highlight=False
        )
        return False
    grader.rounded()
    account = replace(
        grader_account(encoder.base, rows, request.temperature),
        options=_options(request),
        files={
            **({f"the adapter of {request.start.name}": started} if request.start is not None else {}),
            **{path.name: file_sha256(path) for path in request.rows},
        },
    )
    with staged(request.directory) as fresh:
        grader.save(training, fresh)
        write_account(fresh, encoder.base, recipe, account, outcome.curve)
        if out or scored:
            console.print(f"scoring {len(out) + len(scored)} rows", highlight=False)
            _write_logits(fresh / LOGITS_FILE, grader, tokenizer, [*out, *scored])
    checkpoint.unlink()
    console.print(
        f"{training.steps} steps on {len(rows)} rows, {outcome.seconds:.0f} s: {request.directory}", highlight=False
    )
    return True


def training_identity(recipe: GraderRecipe, base_sha256: str, rows: Sequence[GraderRow]) -> str:
    """Return the digest of recipe, base and rows: only a training of the same goes on from a checkpoint."""
    parts = ["grader", asdict(recipe), base_sha256, rows_digest(rows)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def grader_account(base: Base, rows: Sequence[GraderRow], temperature: float) -> Account:
    """Return the `Account` of a grader, without options and files."""
    sha256 = rows_digest(rows)
    sources = Counter(row.source for row in rows)
    kinds = Counter(row.kind for row in rows if row.source == DRAWN)
    return Account(
        command="grader",
        about=[
            f"# A grader on {base.name}",
            "",
            "A cross-encoder for the metric `grader` of gradewire: it reads question, reference and answer together,",
            f"at most {MAX_TOKENS} tokens, and gives the logit of the answer being right. A low-rank adapter on the",
            "base's linear layers, and one linear layer over the mean of its tokens.",
        ],
        data=f"Rows: {len(rows)}, SHA-256 `{sha256}`",
        setting=f"Temperature: {temperature:g}",
        remark="The last step was kept",
        tables=[
            "| source | rows |",
            "|---|---|",
            *(f"| {source} | {count} |" for source, count in sorted(sources.items())),
            "",
            *([f"Drawn rows are of {len(kinds)} kinds: {', '.join(kinds)}.", ""] if kinds else []),
        ],
        metadata={"data_sha256": sha256, "max_tokens": MAX_TOKENS, "temperature": temperature, "text_form": "grader"},
    )


def _drawn(request: Request, recipe: GraderRecipe) -> list[GraderRow]:
    if not recipe.material.drawn_rows:
        return []
    drawer = Drawer(Lexicon(WordNet(request.wordnet or usual_directory())), "train")
    count, seed = recipe.material.drawn_rows, recipe.training.seed
    return [drawn_row(row) for kind in drawer.kinds for row in drawer.rows(kind, count, seed=seed)]


def _write_logits(path: Path, grader: Grader, tokenizer: GraderTokenizer, rows: list[GraderRow]) -> None:
    logits = row_logits(grader, tokenizer, rows)
    lines = [
        json.dumps({"id": row.id, "dataset": row.source, "label": row.label, "logit": float(f"{logit:.7g}")})
        for row, logit in zip(rows, logits, strict=True)
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _options(request: Request) -> str:
    given = [("--rows", path.name) for path in request.rows]
    if request.start:
        given.insert(0, ("--start", request.start.name))
    if request.half:
        given.append(("--half", request.half))
    if request.left_out:
        given.append(("--leave-out-fold", f"{request.left_out.number}/{request.left_out.count}"))
    if request.temperature != 1:
        given.append(("--temperature", f"{request.temperature:g}"))
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given)
