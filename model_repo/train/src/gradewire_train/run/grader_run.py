"""Run ``gradewire models train grader``."""

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from gradewire_models.catalog.entries import ADAPTER_WEIGHTS, HEAD_WEIGHTS
from gradewire_models.repository.digest import file_sha256
from gradewire_models.repository.grader_input import MAX_TOKENS
from gradewire_stats.calibration.labelled_rows import Half
from gradewire_train import TrainingError
from gradewire_train.encoder import Base, trained_weights
from gradewire_train.graded.drawing import Drawer
from gradewire_train.recipes import GraderRecipe
from gradewire_train.rows.counterfactuals import counterfactuals
from gradewire_train.rows.labelled import read_rows
from gradewire_train.rows.row import DRAWN, GraderRow, at_most, drawn_row, fold_of, rows_digest
from gradewire_train.run.card import Account, write_account
from gradewire_train.run.command import Request, base_encoder, run_training
from gradewire_train.run.grader_model import Grader, GraderTokenizer, Judgement, row_logits
from gradewire_train.run.steps import Course, Outcome, StepReport, Steps, deterministic
from gradewire_train.texts.lexicon import Lexicon
from gradewire_train.texts.wordnet import WordNet, usual_directory

LOGITS_FILE = "logits.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderRequest(Request):
    """The command's options; `left_out` is the omitted fold, from 1, and the number of folds."""

    rows: tuple[Path, ...]
    half: Half | None
    left_out: tuple[int, int] | None
    score: tuple[Path, ...]
    start: Path | None
    notice: str
    temperature: float


def run(request: GraderRequest) -> bool:
    """Train a grader; see `run_training`."""
    return run_training(request, GraderRecipe, _GraderWork)


class _GraderWork:
    """A grader's `Work`."""

    def __init__(self, request: GraderRequest, recipe: GraderRecipe, console: Console) -> None:
        self._request, self._recipe, self._console = request, recipe, console
        names = Counter(path.name for path in request.rows)
        if again := [name for name, count in names.items() if count > 1]:
            raise TrainingError(f"--rows: there are two files named {again[0]}, which the card could not tell apart")
        read = [row for path in request.rows for row in read_rows(path, half=request.half)]
        given = at_most(read, recipe.material.source_rows, seed=recipe.training.seed)
        scored = [row for path in request.score for row in read_rows(path)]
        console.print("drawing rows")
        lexicon = Lexicon(WordNet(request.wordnet or usual_directory())) if _draws(recipe) else None
        every = [*(_drawn(recipe, lexicon) if lexicon is not None else ()), *given]
        number, count = request.left_out or (0, 1)
        out = [row for row in every if fold_of(row.asked, count) == number - 1]
        self._rows = [row for row in every if fold_of(row.asked, count) != number - 1]
        self._scored = [*out, *scored]
        if lexicon is not None:
            # Change only rows to train on, so that a row that is left out lends its reference to no other row.
            count, seed = recipe.material.counterfactual_rows, recipe.training.seed
            self._rows += counterfactuals(self._rows, count, lexicon, seed=seed)
        if not self._rows:
            raise TrainingError("there are no rows to train on. Use --rows, or set --drawn-rows above 0")
        deterministic(recipe.training)
        encoder = base_encoder(request, recipe.training, MAX_TOKENS, console)
        self._base = encoder.base
        self._tokenizer = GraderTokenizer(encoder.tokenizer)
        self._grader = Grader(encoder, recipe.training)
        self._started = ""
        if request.start is not None:
            self._grader.start_from(request.start)
            self._started = file_sha256(request.start / ADAPTER_WEIGHTS)
        elif recipe.training.start_share:
            raise TrainingError("training.start_share: there is no earlier grader. Use --start, or set it to 0")
        self._earlier = trained_weights(self._grader)

    def train(self, course: Course, report: Callable[[StepReport], None], stop: Callable[[], bool]) -> Outcome:
        request = self._request
        started = self._started + (file_sha256(request.start / HEAD_WEIGHTS) if request.start is not None else "")
        identity = training_identity(self._recipe, self._base.weights_sha256 + started, self._rows)
        task = Judgement(self._grader, self._tokenizer, self._rows, self._recipe)
        return Steps(task, self._recipe.training, identity, course).go(report, stop)

    def save(self, directory: Path, outcome: Outcome) -> None:
        request = self._request
        started = {f"the adapter of {request.start.name}": self._started} if request.start is not None else {}
        account = replace(
            grader_account(self._base, self._rows, request.temperature),
            options=_options(request) + request.device_option,
            remark=f"The last step was kept{f'. {request.notice}' if request.notice else ''}",
            files=started | {path.name: file_sha256(path) for path in request.rows},
        )
        self._grader.rounded()
        if share := self._recipe.training.start_share:
            self._grader.mix(self._earlier, share)
            self._grader.rounded()
        self._grader.save(self._recipe.training, directory)
        write_account(directory, self._base, self._recipe, account, outcome.curve)
        if self._scored:
            self._console.print(f"scoring {len(self._scored)} rows")
            _write_logits(directory / LOGITS_FILE, self._grader, self._tokenizer, self._scored)

    def summary(self, outcome: Outcome) -> str:
        return f"{outcome.best_step} steps on {len(self._rows)} rows"


def training_identity(recipe: GraderRecipe, base_sha256: str, rows: Sequence[GraderRow]) -> str:
    """Return a digest of the recipe, the base and the rows, for checkpoints."""
    parts = ["grader", asdict(recipe), base_sha256, rows_digest(rows)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def grader_account(base: Base, rows: Sequence[GraderRow], temperature: float) -> Account:
    """Return a grader's `Account`, whose options and files are still missing."""
    sha256 = rows_digest(rows)
    sources = Counter(row.source for row in rows)
    kinds = Counter(row.kind for row in rows if row.source == DRAWN)
    return Account(
        command="grader",
        about=[
            f"# A grader on {Path(base.name).name}",
            "",
            "A cross-encoder for the metric `grader` of gradewire: it reads question, reference and answer together,",
            f"at most {MAX_TOKENS} tokens, and returns the logit of the answer being right. It consists of a low-rank",
            "adapter on the base's linear layers, and one linear layer over the mean of the token vectors.",
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


def _draws(recipe: GraderRecipe) -> bool:
    return recipe.material.drawn_rows > 0 or recipe.material.counterfactual_rows > 0


def _drawn(recipe: GraderRecipe, lexicon: Lexicon) -> list[GraderRow]:
    drawer = Drawer(lexicon, "train")
    material, seed = recipe.material, recipe.training.seed
    kinds = drawer.chosen(material.kinds)
    return [drawn_row(row) for kind in kinds for row in drawer.rows(kind, material.drawn_rows, seed=seed)]


def _write_logits(path: Path, grader: Grader, tokenizer: GraderTokenizer, rows: list[GraderRow]) -> None:
    logits = row_logits(grader, tokenizer, rows)
    lines = [
        json.dumps({"id": row.id, "dataset": row.source, "label": row.label, "logit": float(f"{logit:.7g}")})
        for row, logit in zip(rows, logits, strict=True)
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _options(request: GraderRequest) -> str:
    given = [("--rows", path.name) for path in request.rows]
    if request.start:
        given.insert(0, ("--start", request.start.name))
    if request.half:
        given.append(("--half", request.half))
    if request.left_out:
        given.append(("--leave-out-fold", "/".join(map(str, request.left_out))))
    if request.notice:
        given.append(("--notice", request.notice))
    if request.temperature != 1:
        given.append(("--temperature", f"{request.temperature:g}"))
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given)
