"""Train the recipe's kinds, each in a folder of its own that a later process can continue."""

from __future__ import annotations

import fcntl
import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click
import torch
from benchmarks.agreement.sfve_ablations import ALL, CHANGES, FINAL, GENERATED, OUR_TASKS, OURS, SMALL, UNTRAINED

from gradewire_models.repository.digest import file_sha256
from gradewire_stats.calibration.labelled_rows import question_key
from gradewire_train.encoder import TrainedEncoder, load_base
from gradewire_train.examples import TASKS, Files
from gradewire_train.recipes import Recipe, read_recipe, shipped_recipes, with_settings
from gradewire_train.run.checkpoint import CHECKPOINT_FILE
from gradewire_train.run.loop import Plan, train
from gradewire_train.run.steps import Course, StepReport
from gradewire_train.texts import make_examples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import numpy as np
    from benchmarks.agreement.sfve_ablations.measuring import StandIn
    from numpy.typing import NDArray


def vectors_of(encoder: TrainedEncoder, texts: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Return the vector of each distinct text, float32 [dims]."""
    distinct = sorted(set(texts))
    encoder.model.eval()
    with torch.inference_mode():
        found = encoder.vectors(encoder.tokenize(distinct)).cpu().numpy()
    return dict(zip(distinct, found, strict=True))


@dataclass
class Ablations:
    """The inputs that all runs share, and their folder."""

    sets: Mapping[str, StandIn]
    files: Files
    wordnet: Path | None
    work: Path
    small: Mapping[str, Any] = field(default_factory=dict)

    def recipe(self, kind: str, seed: int) -> Recipe:
        """Return the recipe of a run: `sfve-paper` with fewer steps and texts, and the changes of its kind."""
        recipe = read_recipe(shipped_recipes(Recipe)["sfve-paper"], Recipe)
        small = {**SMALL, **self.small, "seed": seed}
        read = small.get("steps", recipe.training.steps) * small.get("batch_size", recipe.training.batch_size)
        ours = kind == OURS
        # The printed tasks share the examples of one epoch equally; ours together count as one task.
        each = read // (5 if ours else 4)
        counts = dict.fromkeys(("nli", "candidates", "synonyms", "descriptions"), each)
        counts |= dict.fromkeys(OUR_TASKS, each // len(OUR_TASKS) if ours else 0)
        return with_settings(recipe, {**small, **counts, **CHANGES[kind]})

    def run(self, kind: str, base: str, seed: int) -> None:
        """Train and measure, unless the result is there or another process is at it.

        Raises:
            click.ClickException: The folder's run had other inputs: recipe, files or rows.
        """
        folder = self.work / f"{base} {kind} {seed}".replace(" ", "-").replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        with _mine(folder) as mine:
            if not mine:
                return
            _keep_inputs(folder, self._inputs(kind, base, seed))
            if not (folder / "result.json").exists():
                result = self._untrained(base) if kind == UNTRAINED else self._trained(kind, base, seed, folder)
                named = {"kind": kind, "base": base, "seed": seed, **result}
                (folder / "result.json").write_text(json.dumps(named, indent=1), encoding="utf-8")
                click.echo(f"{folder.name} is done", err=True)

    def _inputs(self, kind: str, base: str, seed: int) -> dict[str, Any]:
        """Return what decides a run's result, by name; the folder's name has only the kind, the base and the seed."""
        measured = {name: each.digest() for name, each in self.sets.items() if name != "apart" or kind in FINAL}
        if kind == UNTRAINED:
            return {"base": base, "rows": measured}
        files = Files() if kind == GENERATED else self.files
        return {
            "recipe": asdict(self.recipe(kind, seed)),
            "base": base,
            "questions": sorted(map(file_sha256, files.questions)),
            "sentence pairs": sorted(map(file_sha256, files.nli_pairs)),
            "rows": measured,
        }

    def _untrained(self, base: str) -> dict[str, Any]:
        return {"sets": self._measured(load_base(base, max_tokens=128), UNTRAINED), "curve": []}

    def _trained(self, kind: str, base: str, seed: int, folder: Path) -> dict[str, Any]:
        recipe = with_settings(self.recipe(kind, seed), {"base": base})
        files = Files() if kind == GENERATED else self.files
        wanted = [task for task in TASKS if task not in recipe.without]
        counts = {task: getattr(recipe.texts, task) for task in TASKS}
        made = make_examples(counts, files, seed=seed, wordnet=self.wordnet, only=wanted)
        # The fit split may share a question with the stand-in that reports.
        kept = {question_key(row["question"]) for row in self.sets["apart"].rows}
        examples = [each for each in made if not each.question or question_key(each.question) not in kept]
        encoder = load_base(base, max_tokens=recipe.training.max_tokens)
        steps = recipe.training.steps
        looked = folder / "curve.jsonl"

        def report(step: StepReport) -> None:
            if (kind, seed) == (ALL, 1) and step.step in {steps // 4, steps // 2}:
                found = self.sets["a"].ave_rows(vectors_of(encoder, self.sets["a"].texts()))
                line = {"step": step.step, "scores": found.scores.tolist()}
                with looked.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")

        course = Course(
            directory=folder, checkpoint_every=max(steps // 4, 1), resume=(folder / CHECKPOINT_FILE).exists()
        )
        outcome = train(encoder, Plan(recipe, examples, course), report)
        lines = looked.read_text(encoding="utf-8").splitlines() if looked.exists() else []
        # A continued run may have looked at a step twice.
        curve = {line["step"]: line for line in map(json.loads, lines)}
        result = {
            "sets": self._measured(encoder, kind),
            "curve": [curve[step] for step in sorted(curve)],
            "seconds": outcome.seconds,
            "examples": len(examples),
            "steps": steps,
            "batch_size": recipe.training.batch_size,
        }
        (folder / CHECKPOINT_FILE).unlink()
        return result

    def _measured(self, encoder: TrainedEncoder, kind: str) -> dict[str, list[list[float]]]:
        """Return the scores of each set's rows by part."""
        sets = {name: each for name, each in self.sets.items() if name != "apart" or kind in FINAL}
        vectors = vectors_of(encoder, (text for each in sets.values() for text in each.texts()))
        return {name: each.ave_rows(vectors).scores.tolist() for name, each in sets.items()}


def _keep_inputs(folder: Path, inputs: Mapping[str, Any]) -> None:
    """Write the inputs of a run, or refuse a run that has others."""
    path = folder / "inputs.json"
    wanted = json.loads(json.dumps(inputs))
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
    elif (folder / "result.json").exists() or (folder / CHECKPOINT_FILE).exists():
        kept = {}
    else:
        path.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
        return
    if other := [name for name, value in wanted.items() if kept.get(name) != value]:
        raise click.ClickException(f"{folder} has a run with other {', '.join(other)}. Choose another --work")


@contextmanager
def _mine(folder: Path) -> Iterator[bool]:
    """Yield True if no other process works in the folder."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
