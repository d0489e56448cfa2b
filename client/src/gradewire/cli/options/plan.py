"""What a run asks of every row, as the options say it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gradewire.metric_types.choice import MetricDefaults, choose_metrics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gradewire.metric_types import Preset, Synthetic
    from gradewire.metric_types.choice import MetricChoice, MetricsLike
    from gradewire.metric_types.prompt_text import PromptText


@dataclass(frozen=True, slots=True)
class GivenPrompt:
    """A prompt file of the command line: where it is, and what it says."""

    path: Path
    prompt: PromptText


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePlan:
    """What is asked of every row.

    Attributes:
        metrics: As `Client.score` takes them.
        preset: For smile where `metrics` names none.
        synthetic: For smile where `metrics` does not say.
        model: Encoder of metrics that do not say their own.
        reference_set: With synthetic = prepared.
        judge: Judge of metrics that do not say their own.
        prompts: Prompt files of the command line.
        retries: How often rows are sent again when the server says that this may help.
    """

    metrics: MetricsLike
    preset: Preset | None = None
    synthetic: Synthetic | None = None
    model: str | None = None
    reference_set: str | None = None
    judge: str | None = None
    prompts: Sequence[GivenPrompt] = ()
    retries: int = 0

    def choice(self) -> MetricChoice:
        """The metrics with these defaults filled in; raises InvalidRequest where they are not to be understood."""
        defaults = MetricDefaults(self.preset, self.synthetic, self.model, self.reference_set, self.judge)
        return choose_metrics(self.metrics, defaults)

    def arguments(self) -> dict[str, Any]:
        """Arguments of `Client.score`."""
        return {
            "metrics": self.metrics,
            "preset": self.preset,
            "synthetic": self.synthetic,
            "model": self.model,
            "reference_set": self.reference_set,
            # `Client.prepare` takes none.
            **({"judge": self.judge} if self.judge else {}),
        }

    def with_default_synthetic(self, *, present: bool) -> ScorePlan:
        """Where nobody said which synthetic answers to use: prepared with a reference set, else those there are."""
        if self.synthetic is not None:
            return self
        return self.with_synthetic("prepared" if self.reference_set else "inline" if present else "none")

    def with_synthetic(self, synthetic: Synthetic) -> ScorePlan:
        """The same with other synthetic answers."""
        return replace(self, synthetic=synthetic)
