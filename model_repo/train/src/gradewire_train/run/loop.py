"""The training itself: steps, reports, checkpoints, and the best step kept."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from gradewire_train.adapter import prepare, set_weights, trained_weights
from gradewire_train.batches import Batches, Tokens, plain_of_step, tokenize
from gradewire_train.encoder import TrainedEncoder
from gradewire_train.errors import TrainingError
from gradewire_train.examples import Example, texts
from gradewire_train.objective import contrastive, group, keeping, ranking
from gradewire_train.recipes.recipe import Recipe
from gradewire_train.run.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from gradewire_train.selection import MEAN, Selection
from gradewire_train.texts import examples_digest


@dataclass(frozen=True, slots=True)
class StepReport:
    """Progress after a step.

    Attributes:
        step: Steps done; 0 is the base, before any.
        steps: Steps in all.
        figures: loss, its terms, and what `Selection.spearman` gives where the labelled rows were ranked.
        examples_per_s: Since the training was started or resumed.
        remaining_s: At that rate; NaN before the first step.
    """

    step: int
    steps: int
    figures: dict[str, float]
    examples_per_s: float
    remaining_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One training.

    Attributes:
        recipe: Its settings.
        examples: What it reads; all of them are used.
        directory: Of checkpoints; has to exist.
        selection: Selects the best step; None keeps the last.
        evaluate_every: Steps between two evaluations of `selection`.
        checkpoint_every: Steps between two checkpoints.
        resume: Go on from the checkpoint in `directory`.
    """

    recipe: Recipe
    examples: Sequence[Example]
    directory: Path
    selection: Selection | None = None
    evaluate_every: int = 100
    checkpoint_every: int = 100
    resume: bool = False

    def identity(self, base_sha256: str) -> str:
        """Digest of all that decides what comes out, the base's weights among it."""
        texts_sha256 = examples_digest(self.examples)
        rows_sha256 = self.selection.digest if self.selection is not None else ""
        parts = [asdict(self.recipe), base_sha256, texts_sha256, rows_sha256, self.evaluate_every]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a training ended.

    Attributes:
        best_step: The step whose weights the encoder now has.
        curve: See `Checkpoint`.
        seconds: In all, resumed parts included.
        finished: False where it was stopped, and left a checkpoint.
    """

    best_step: int
    curve: list[dict[str, float]]
    seconds: float
    finished: bool


def train(
    encoder: TrainedEncoder, plan: Plan, report: Callable[[StepReport], None], stop: Callable[[], bool] = lambda: False
) -> Outcome:
    """Trains `encoder`, as `load_base` gives it, in place, and leaves the best step's weights in it.

    After every step `report` is called, and `stop`, which says whether to stop there and leave a checkpoint.

    Deterministic: what is drawn depends on seed and step only, torch's deterministic algorithms are asked for, and the
    number of threads is the recipe's.

    Raises:
        TrainingError: The loss is no number, or the checkpoint is not this training's.
        OSError: A checkpoint cannot be written.
    """
    settings = plan.recipe.training
    torch.set_num_threads(settings.threads)
    torch.use_deterministic_algorithms(True)  # noqa: FBT003 - torch's own signature
    keep = plan.recipe.objective.keep_weight > 0
    tokens = tokenize(plan.examples, encoder, negatives=settings.negatives, plain=keep)
    before = _base_vectors(encoder, tokens) if keep else None
    prepare(encoder, settings)
    run = _Run(encoder, plan, tokens, before)
    return run.go(report, stop)


class _Run:
    def __init__(self, encoder: TrainedEncoder, plan: Plan, tokens: Tokens, before: Any) -> None:
        settings = plan.recipe.training
        self.encoder, self.plan, self.tokens, self.before = encoder, plan, tokens, before
        self.batches = Batches(tokens, batch_size=settings.batch_size, seed=settings.seed)
        self.weights = [each for each in encoder.model.parameters() if each.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self.weights, lr=0.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=settings.weight_decay
        )
        # As a checkpoint has it, but for weights and optimiser: those are taken when one is saved.
        self.state = Checkpoint(plan.identity(encoder.base.weights_sha256))
        if plan.resume:
            self._restore(load_checkpoint(plan.directory, self.state.identity))

    def go(self, report: Callable[[StepReport], None], stop: Callable[[], bool]) -> Outcome:
        settings, state = self.plan.recipe.training, self.state
        started, first = time.perf_counter() - state.seconds, state.step
        spent = state.seconds
        if state.step == 0 and self.plan.selection is not None:
            figures = self._evaluate()
            state.curve.append({"step": 0.0, **figures})
            report(StepReport(0, settings.steps, figures, 0.0, math.nan))
        while state.step < settings.steps:
            figures = self._one_step()
            state.step += 1
            last = state.step == settings.steps
            if last or state.step % self.plan.evaluate_every == 0:
                figures.update(self._evaluate())
            state.seconds = time.perf_counter() - started
            state.curve.append({"step": float(state.step), **figures})
            pace = (state.step - first) / max(state.seconds - spent, 1e-9)
            left_s = (settings.steps - state.step) / pace
            report(StepReport(state.step, settings.steps, figures, pace * settings.batch_size, left_s))
            if not last and stop():
                self._save()
                return Outcome(state.best_step, state.curve, state.seconds, finished=False)
            if not last and state.step % self.plan.checkpoint_every == 0:
                self._save()
        self._save()
        if state.best_step and state.best_step != state.step:
            set_weights(self.encoder.model, state.best)
        return Outcome(state.best_step or state.step, state.curve, state.seconds, finished=True)

    def _one_step(self) -> dict[str, float]:
        settings, objective = self.plan.recipe.training, self.plan.recipe.objective
        # What dropout draws in a step does not depend on how the run came there.
        torch.manual_seed(settings.seed * 1_000_003 + self.state.step)
        self.encoder.model.train()
        examples = self.batches[self.state.step]
        read = [texts(example) for example in examples]
        ordered = [*(each[0] for each in read), *(each[1] for each in read), *(t for each in read for t in each[2:])]
        vectors = self._vectors(ordered)
        count = len(examples)
        anchors, candidates = vectors[:count], vectors[count:]
        members = group(examples)
        terms = {}
        if objective.contrastive_weight:
            terms["contrastive"] = objective.contrastive_weight * contrastive(
                anchors, candidates, members.allowed, temperature=objective.temperature
            )
        if objective.ranking_weight and len(members.owner):
            positives = (anchors * candidates[:count]).sum(1)
            negatives = (anchors[members.owner] * candidates[count:]).sum(1)
            terms["ranking"] = objective.ranking_weight * ranking(
                positives, negatives, temperature=objective.temperature
            )
        if self.before is not None:
            chosen = plain_of_step(self.tokens, count=objective.keep_texts, seed=settings.seed, step=self.state.step)
            now = self._vectors([self.tokens.plain[index] for index in chosen])
            terms["keep"] = objective.keep_weight * keeping(now, self.before[torch.from_numpy(chosen)])
        return self._descend(terms)

    def _descend(self, terms: dict[str, Any]) -> dict[str, float]:
        settings = self.plan.recipe.training
        if not terms:
            raise TrainingError("objective: every term that these texts have weighs 0; give one a weight")
        loss = torch.stack(list(terms.values())).sum()
        figures = {"loss": loss.item(), **{name: term.item() for name, term in terms.items()}}
        if not math.isfinite(figures["loss"]):
            raise TrainingError(f"step {self.state.step + 1}: the loss is {figures['loss']}; lower learning_rate")
        for each in self.optimizer.param_groups:
            each["lr"] = settings.learning_rate * schedule(self.state.step, settings.steps, settings.warmup)
        self.optimizer.zero_grad()
        loss.backward()
        if settings.gradient_norm:
            torch.nn.utils.clip_grad_norm_(self.weights, settings.gradient_norm)
        self.optimizer.step()
        return figures

    def _vectors(self, ordered: Sequence[str]) -> Any:
        # The same text twice in a batch goes through the encoder once.
        rows = {text: index for index, text in enumerate(dict.fromkeys(ordered))}
        ids = [self.tokens.ids[text] for text in rows]
        with torch.autocast("cpu", torch.bfloat16, enabled=self.plan.recipe.training.precision == "bfloat16"):
            found = self.encoder.vectors(ids)
        return found.float()[torch.tensor([rows[text] for text in ordered])]

    def _evaluate(self) -> dict[str, float]:
        if self.plan.selection is None:
            return {}
        found = self.plan.selection.spearman(self.encoder)
        if math.isnan(found[MEAN]):
            raise TrainingError(
                f"step {self.state.step}: the dev rows cannot be ranked: within every part all labels or all cosines "
                "are equal; give other rows, or train without them"
            )
        known = [row[MEAN] for row in self.state.curve if row.get(MEAN, math.nan) > -1 and row["step"] > 0]
        # The base itself (step 0) is no candidate: trained weights are what was asked for, and the card shows both.
        if self.state.step and found[MEAN] > max(known, default=-2.0):
            self.state.best_step, self.state.best = self.state.step, trained_weights(self.encoder.model)
        return found

    def _save(self) -> None:
        weights, optimizer = trained_weights(self.encoder.model), self.optimizer.state_dict()
        save_checkpoint(replace(self.state, weights=weights, optimizer=optimizer), self.plan.directory)

    def _restore(self, found: Checkpoint) -> None:
        set_weights(self.encoder.model, found.weights)
        self.optimizer.load_state_dict(found.optimizer)
        self.state = replace(found, weights={}, optimizer={})


def schedule(step: int, steps: int, warmup: float) -> float:
    """Factor of the learning rate in a step, counted from 0: up in a line, then down along a cosine to 0."""
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / (rising + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(steps - rising, 1)))


def _base_vectors(encoder: TrainedEncoder, tokens: Tokens) -> Any:
    # Not in inference mode, whose tensors may not stand in a graph of gradients.
    with torch.no_grad():
        return encoder.vectors([tokens.ids[text] for text in tokens.plain])
