"""A torchmetrics metric with `update`, `compute` and `reset`. Each rank scores its own answers."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future  # noqa: TC003 - torch evaluates annotations
from typing import Any, Unpack

from gradewire._common_failures import FailureNotices, outcomes_of
from gradewire.api import Client
from gradewire.errors import InvalidRequest, needed_by
from gradewire.integrations.training import shard_totals
from gradewire.metrics.choice import MetricsLike
from gradewire.options import CallOptions, ScoreOptions
from gradewire.results import ScoreReport  # noqa: TC001 - torch evaluates annotations

with needed_by("GradewireMetric", "gradewire[torchmetrics]"):
    import torch
    import torchmetrics

_log = logging.getLogger("gradewire.metric")


class GradewireMetric(torchmetrics.Metric):  # type: ignore[misc]  # torchmetrics is optional: mypy runs without it
    """A metric that a server scores in the background; `compute` waits for the scores and combines all ranks.

    `update` returns at once, and raises no errors from the server. Answers that were not scored in time count only in
    `LABEL_not_scored`, not in the mean. Prefer `update` to `forward`, which waits for each batch's scores.

    Args:
        client: HOST:PORT of a server, or a client.
        metrics: See `Client.score`.
        wait_s: Maximum time that `compute` waits for pending scores, in seconds.
        **options: See `Client.score`. `deadline_s` applies to each batch, and defaults to `wait_s`.

    Raises:
        InvalidRequest: An argument is wrong.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    totals: torch.Tensor

    def __init__(
        self,
        client: str | Client,
        metrics: MetricsLike = "correctness",
        *,
        wait_s: float = 60.0,
        **options: Unpack[ScoreOptions],
    ) -> None:
        super().__init__()
        self.labels = CallOptions.of("GradewireMetric", metrics, options).choose().labels
        self._client = Client(client) if isinstance(client, str) else client
        # The deadline of a call is `wait_s`: nobody waits longer for the scores, and a call delays the program's end.
        self._options: ScoreOptions = {"deadline_s": wait_s, **options}
        self._metrics, self._wait_s = metrics, wait_s
        self._pending: list[tuple[int, Future[ScoreReport]]] = []
        self._notices = FailureNotices(_log)
        zeros = torch.zeros(len(self.labels), len(shard_totals.COLUMNS), dtype=torch.float64)
        self.add_state("totals", default=zeros, dist_reduce_fx="sum")

    def update(
        self, preds: Sequence[str], target: Sequence[str | Sequence[str]], questions: Sequence[str] | None = None
    ) -> None:
        """Send a batch of answers.

        Args:
            preds: Answers to grade.
            target: The reference answer or answers for each of `preds`.
            questions: The question for each of `preds`, for metrics that need it.

        Raises:
            InvalidRequest: The three arguments have different lengths.
        """
        asked = [""] * len(preds) if questions is None else questions
        if not len(preds) == len(target) == len(asked):
            raise InvalidRequest(
                f"preds, target and questions have {len(preds)}, {len(target)} and {len(asked)} entries: give lists of "
                "equal length"
            )
        items = [
            {
                "prediction": answer,
                "references": [right] if isinstance(right, str) else list(right),
                "question": question,
            }
            for answer, right, question in zip(preds, target, asked, strict=True)
        ]
        self._pending.append((len(items), self._client.submit(items, self._metrics, **self._options)))

    def compute(self) -> dict[str, torch.Tensor]:
        """Return each label's mean score and `LABEL_not_scored`; with verdicts, `…_share_right` and `…_uncertain`."""
        values: dict[str, float] = {}
        for label, totals in zip(self.labels, self.totals.tolist(), strict=True):
            values |= shard_totals.means(label, totals)
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}

    def counts(self) -> dict[str, dict[str, int]]:
        """Wait for pending scores, and return the number of this rank's answers by label and status."""
        self._settle()
        rows = self.totals.tolist()
        return {label: shard_totals.counts(totals) for label, totals in zip(self.labels, rows, strict=True)}

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Wait for pending scores before ranks synchronise. torchmetrics calls this method before every `compute`."""
        self._settle()
        super().sync(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
        """Wait for a batch's scores, and return the batch's values."""
        self._settle()
        values: dict[str, torch.Tensor] = super().forward(*args, **kwargs)
        return values

    def reset(self) -> None:
        """Drop all scores, and cancel pending batches."""
        for _, future in self._pending:
            future.cancel()
        self._pending = []
        super().reset()

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        state: dict[str, Any] = super().__getstate__()
        return state

    def _settle(self) -> None:
        until_s = time.monotonic() + self._wait_s
        pending, self._pending = self._pending, []
        for items, future in pending:
            rows = self._rows(items, future, until_s)
            self.totals += torch.tensor(rows, dtype=self.totals.dtype, device=self.totals.device)

    def _rows(self, items: int, future: "Future[ScoreReport]", until_s: float) -> list[list[float]]:
        try:
            report = future.result(max(0.0, until_s - time.monotonic()))
            self._notices.take("answers of a batch", outcomes_of([item.scores for item in report]), _arguments)
            return shard_totals.shard_totals(report)
        except Exception as error:  # noqa: BLE001 - this rank must not miss the reduction
            future.cancel()
            _log.warning("%d answers were not scored: %s: %s", items, type(error).__name__, error)
            return shard_totals.unanswered_totals(items, len(self.labels))


def _arguments() -> str:
    return "`update` reads answers from preds, references from target and questions from questions"
