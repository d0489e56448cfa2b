"""Types of the keyword arguments that the methods of both clients share."""

from typing import Literal, TypeAlias, TypedDict

from gradewire.metric_types import Preset, Synthetic

Priority: TypeAlias = Literal["normal", "bulk"]
"""Of a call that scores."""


class PrepareOptions(TypedDict, total=False):
    """Keyword arguments that all calls take; None says no more than leaving one out.

    Attributes:
        preset: For smile where `metrics` names none.
        synthetic: none, inline or prepared; for smile where `metrics` does not say.
        model: Encoder, NAME or NAME@DIGEST, for metrics that do not say their own.
        deadline_s: Seconds; the call says of what.
    """

    preset: Preset | None
    synthetic: Synthetic | None
    model: str | None
    deadline_s: float | None


class CompareOptions(TypedDict, total=False):
    """Keyword arguments of calls that compare; None says no more than leaving one out.

    Attributes:
        judge: NAME or NAME@DIGEST, for a comparison that does not say its own model.
        priority: As in `ScoreOptions`; streams are always "bulk".
        deadline_s: Seconds; the call says of what.
    """

    judge: str | None
    priority: Priority | None
    deadline_s: float | None


class ScoreOptions(PrepareOptions, total=False):
    """Keyword arguments of calls that score: those of all calls, and three more.

    Attributes:
        judge: As `model`, for metrics that ask a judge.
        priority: "bulk" lets the requests of others go first where a server has more work than it can do at once;
            streams always do.
        reference_set: What `prepare` returned, for metrics with synthetic, corpus or idf = prepared.
    """

    judge: str | None
    priority: Priority | None
    reference_set: str | None
