"""A callback for Lightning's Trainer."""

import logging
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradewire.errors import InvalidRequest, needed_by
from gradewire.integrations.training.steps import ESTIMATES, StepScores, StepState
from gradewire.integrations.training.validation import ValidationScorer, ValidationSettings
from gradewire.items import ItemLike

with needed_by("ValidationCallback", "gradewire[lightning]"):
    import torch
    from lightning.pytorch import Callback

Items = Callable[[Any, Any], Iterable[ItemLike]]

_log = logging.getLogger("gradewire.validation")


def items_of_outputs(outputs: Any, batch: Any) -> Iterable[ItemLike]:
    """Return the "items" from the output of `validation_step`.

    Raises:
        InvalidRequest: The output has no "items".
    """
    del batch
    try:
        found: Iterable[ItemLike] = outputs["items"]
    except (TypeError, KeyError, IndexError):
        raise InvalidRequest(
            'validation_step returned no "items": return {"items": [{"question": …, "references": [...], '
            '"prediction": …}, …]}, or give ValidationCallback(items=…)'
        ) from None
    return found


class ValidationCallback(Callback):  # type: ignore[misc]  # lightning is optional: mypy runs without it
    """A callback that submits each validation's answers, and logs scores under their step when they arrive.

    Scores go to all of the trainer's loggers, on the training loop's thread. Rank 0 gathers all ranks' answers in its
    spool. Items that `DistributedSampler` repeats to fill a rank are scored twice. Answers from Lightning's sanity
    check are not scored, but the callback checks their format.

    With `wait_s`, `ModelCheckpoint(monitor="validation/correctness/mean")` and `EarlyStopping` can use a validation's
    scores: they are in `trainer.callback_metrics` on all ranks, under the names of `StepScores.scalars`. If the scores
    are late, these values are NaN, which Lightning never takes for the best.

    Args:
        settings: Settings for the scorer. The scorer's sinks receive the scores in addition to the trainer's loggers.
        items: A function that returns items, given the output of `validation_step` and the batch.
        name: The data set's name; scores are logged under it. For data loaders after the first, the loader's index is
            appended: `validation_1`.
        wait_s: Maximum time that each validation waits for its scores at its end, in seconds.
        close_s: Maximum number of seconds to wait for scores when the training ends, if the server answers.
    """

    def __init__(
        self,
        settings: ValidationSettings,
        *,
        items: Items = items_of_outputs,
        name: str = "validation",
        wait_s: float = 0.0,
        close_s: float = 60.0,
    ) -> None:
        self._settings, self._items, self._name = settings, items, name
        self._wait_s, self._close_s = wait_s, close_s
        self._collected: defaultdict[int, list[ItemLike]] = defaultdict(list)
        self._late: deque[StepScores] = deque()
        self.scorer: ValidationScorer | None = None

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Create the scorer on rank 0."""
        del pl_module
        if stage in {"fit", "validate"} and trainer.is_global_zero and self.scorer is None:
            self.scorer = self._settings.make_scorer(self._late.append)

    def on_validation_batch_end(  # noqa: PLR0913, PLR0917 - Lightning's signature
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Collect a batch's answers."""
        del pl_module, batch_idx
        items = list(self._items(outputs, batch))
        if not trainer.sanity_checking:
            self._collected[dataloader_idx] += items

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Submit the collected answers. With `wait_s`, wait for their scores, and log them for other callbacks."""
        if trainer.sanity_checking:
            return
        collected, self._collected = dict(self._collected), defaultdict(list)
        shards = _gathered(collected, trainer.world_size, is_first=trainer.is_global_zero)
        names = self._submit(trainer.global_step, shards)
        if self._wait_s:
            # `_log_late` passes the scores to the loggers, so they are not logged twice.
            pl_module.log_dict(
                trainer.strategy.broadcast(self._waited_for(trainer.global_step, names)), logger=False, batch_size=1
            )

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Log the scores that have arrived."""
        self._log_late(trainer)

    def on_validation_end(self, trainer: Any, *_: Any) -> None:
        """Log the scores that have arrived."""
        self._log_late(trainer)

    def teardown(self, trainer: Any, *_: Any, **_stage: Any) -> None:
        """Wait for scores, log them and release the directory, which keeps unscored steps for the next run."""
        self._close(trainer, self._close_s)

    def on_exception(self, trainer: Any, *_: Any) -> None:
        """Release the directory without waiting."""
        self._close(trainer, 0.0)

    def _submit(self, step: int, shards: Sequence[dict[int, list[ItemLike]]]) -> list[str]:
        """Submit all ranks' items, and return the names of the data sets. Return [] on ranks without a scorer."""
        names: list[str] = []
        if self.scorer is None:
            return names
        for loader in sorted({loader for shard in shards for loader in shard}):
            items = [item for shard in shards for item in shard.get(loader, ())]
            names.append(f"{self._name}_{loader}" if loader else self._name)
            self.scorer.submit(step, items, names[-1])
        return names

    def _waited_for(self, step: int, names: Sequence[str]) -> dict[str, float]:
        """Return the step's values by tag, with NaN in place of missing estimates. On other ranks, return {}."""
        until_s = time.monotonic() + self._wait_s
        values: dict[str, float] = {}
        if self.scorer is None:
            return values
        for name in names:
            scores = self.scorer.wait_for(step, name, max(0.0, until_s - time.monotonic()))
            if scores is None:
                _log.warning("step %d of %s has no scores after %g s (wait_s)", step, name, self._wait_s)
            values |= {f"{name}/{label}/{each}": math.nan for label in self.scorer.labels for each in ESTIMATES}
            values |= {} if scores is None else scores.scalars()
        return values

    def _close(self, trainer: Any, timeout_s: float) -> None:
        if self.scorer is not None:
            self.scorer.close(timeout_s)
            self.scorer = None
            self._log_late(trainer)

    def _log_late(self, trainer: Any) -> None:
        while self._late:
            scores = self._late.popleft()
            if scores.state is not StepState.SCORED:
                continue
            for logger in trainer.loggers:
                try:
                    logger.log_metrics(scores.scalars(), step=scores.step)
                except Exception:  # noqa: BLE001 - a tracker may raise anything
                    _log.exception("%s failed on the scores of step %d", type(logger).__name__, scores.step)


def _gathered(
    collected: dict[int, list[ItemLike]], world_size: int, *, is_first: bool
) -> list[dict[int, list[ItemLike]]]:
    """Return all ranks' items on rank 0, and nothing on other ranks. All ranks must call this function."""
    if world_size == 1:
        return [collected]
    shards: list[Any] | None = [None] * world_size if is_first else None
    torch.distributed.gather_object(collected, shards, dst=0)
    return shards or []
