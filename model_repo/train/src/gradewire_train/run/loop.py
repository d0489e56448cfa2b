"""Train an encoder for `sfve`: choose the examples of each step, and compute their loss."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from gradewire_train.batches import Batches, Tokens, plain_of_step, tokenize
from gradewire_train.encoder import TrainedEncoder, device_of, prepare
from gradewire_train.examples import Example, texts
from gradewire_train.objective import contrastive, group, keeping, ranking
from gradewire_train.recipes import Recipe
from gradewire_train.run.steps import Course, Outcome, StepReport, Steps, deterministic, products
from gradewire_train.selection import Selection
from gradewire_train.texts import examples_digest


@dataclass(frozen=True, slots=True)
class Plan:
    """The inputs of a training run. Without a `selection`, the run keeps the last step."""

    recipe: Recipe
    examples: Sequence[Example]
    course: Course
    selection: Selection | None = None

    def identity(self, base_sha256: str) -> str:
        """Return a digest of everything that affects the result, including the base's weights."""
        texts_sha256 = examples_digest(self.examples)
        rows_sha256 = self.selection.digest if self.selection is not None else ""
        parts = [asdict(self.recipe), base_sha256, texts_sha256, rows_sha256, self.course.evaluate_every]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def train(
    encoder: TrainedEncoder, plan: Plan, report: Callable[[StepReport], None], stop: Callable[[], bool] = lambda: False
) -> Outcome:
    """Train an `encoder` from `load_base` in place; at the end, the encoder has the best step's weights.

    `report` and `stop` are called after every step. If `stop` returns True, the training stops and leaves a checkpoint.
    The result is deterministic.

    Raises:
        TrainingError: The loss is not finite, or the checkpoint belongs to a different training run.
        OSError: A checkpoint is not writable.
    """
    settings = plan.recipe.training
    deterministic(settings)
    keep = plan.recipe.objective.keep_weight > 0
    tokens = tokenize(plan.examples, encoder, negatives=settings.negatives, plain=keep)
    before = _base_vectors(encoder, tokens) if keep else None
    prepare(encoder, settings)
    course = plan.course if plan.selection is not None else replace(plan.course, evaluate_every=0)
    task = _Contrast(encoder, plan, tokens, before)
    return Steps(task, settings, plan.identity(encoder.base.weights_sha256), course).go(report, stop)


class _Contrast:
    """SFVE's `Task`."""

    def __init__(self, encoder: TrainedEncoder, plan: Plan, tokens: Tokens, before: Any) -> None:
        settings = plan.recipe.training
        self._encoder, self._plan, self._tokens, self._before = encoder, plan, tokens, before
        self._batches = Batches(tokens.lengths, batch_size=settings.batch_size, seed=settings.seed)

    @property
    def model(self) -> Any:
        return self._encoder.model

    def rates(self) -> Sequence[tuple[float, Sequence[Any]]]:
        return [(1.0, [each for each in self.model.parameters() if each.requires_grad])]

    def terms(self, step: int) -> Mapping[str, Any]:
        settings, objective = self._plan.recipe.training, self._plan.recipe.objective
        examples = [self._tokens.examples[index] for index in self._batches[step]]
        read = [texts(example) for example in examples]
        ordered = [*(each[0] for each in read), *(each[1] for each in read), *(t for each in read for t in each[2:])]
        vectors = self._vectors(ordered)
        count = len(examples)
        anchors, candidates = vectors[:count], vectors[count:]
        owner, allowed = (each.to(vectors.device) for each in group(examples))
        terms = {}
        if objective.contrastive_weight:
            terms["contrastive"] = objective.contrastive_weight * contrastive(
                anchors, candidates, allowed, temperature=objective.temperature
            )
        if objective.ranking_weight and len(owner):
            positives = (anchors * candidates[:count]).sum(1)
            negatives = (anchors[owner] * candidates[count:]).sum(1)
            terms["ranking"] = objective.ranking_weight * ranking(
                positives, negatives, temperature=objective.temperature
            )
        if self._before is not None:
            chosen = plain_of_step(self._tokens, count=objective.keep_texts, seed=settings.seed, step=step)
            now = self._vectors([self._tokens.plain[index] for index in chosen])
            terms["keep"] = objective.keep_weight * keeping(now, self._before[torch.from_numpy(chosen)])
        return terms

    def evaluate(self) -> dict[str, float]:
        return {} if self._plan.selection is None else self._plan.selection.spearman(self._encoder)

    def _vectors(self, ordered: Sequence[str]) -> Any:
        rows = {text: index for index, text in enumerate(dict.fromkeys(ordered))}
        ids = [self._tokens.ids[text] for text in rows]
        with products(self._plan.recipe.training, device_of(self.model)):
            found = self._encoder.vectors(ids)
        return found.float()[torch.tensor([rows[text] for text in ordered])]


def _base_vectors(encoder: TrainedEncoder, tokens: Tokens) -> Any:
    # Do not use inference mode, because autograd rejects its tensors.
    with torch.no_grad():
        return encoder.vectors([tokens.ids[text] for text in tokens.plain])
