"""Metrics that compare vectors of an encoder."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from gradewire.metric_types.base import Metric

Preset = Literal["v1", "fast", "one_pass", "whole", "paper", "reference_code"]
Synthetic = Literal["none", "inline", "prepared"]
Measure = Literal["f1", "precision", "recall"]
Corpus = Literal["none", "request", "prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Smile(Metric):
    """SMILE: sentence similarity, best keyword window and exact words in one score, 0 to 1.

    Attributes:
        preset: v1 (default), fast, one_pass, whole, paper or reference_code; None leaves it to the call, then to the
            server.
        synthetic: What the sentence is compared with: the reference itself (none, default), the item's
            `synthetic_answers` (inline), or those stored by `prepare` (prepared).
        reference_set: Where prepared synthetic answers are looked up, and means them; None: the call's. A call has one.
        sentence_weight: Weight of the sentence term, 0 to 1; None: the one fitted for the model, else the preset's.
        threshold: Score from which the answer counts as right; None: the one fitted for the model, else 2/3.
        model: Encoder, NAME or NAME@DIGEST (at least 8 hex digits); None: the server's default.
    """

    name: ClassVar[Literal["smile"]] = "smile"
    preset: Preset | None = None
    synthetic: Synthetic | None = None
    reference_set: str | None = None
    sentence_weight: float | None = None
    threshold: float | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sbert(Metric):
    """Largest cosine of the sentence vectors of prediction and references, -1 to 1.

    Attributes:
        threshold: Score from which the answer counts as right; None: the one fitted for the model, else no verdict.
        model: As in `Smile`.
    """

    name: ClassVar[Literal["sbert"]] = "sbert"
    threshold: float | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sfve(Metric):
    """SFVE: cosine of question with prediction and question with reference, -1 to 1; needs the question.

    Attributes as in `Sbert`.
    """

    name: ClassVar[Literal["sfve"]] = "sfve"
    needs_question: ClassVar[bool] = True
    threshold: float | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bertscore(Metric):
    """BERTScore: tokens matched with their closest ones by cosine; -1 to 1 before rescaling.

    Attributes:
        measure: What becomes the score: f1 (default), precision or recall.
        layer: Hidden layer whose vectors are compared, 1 for the first; None: the model's own choice.
        idf: Weights of tokens, counted over: nothing (none, default), the references of one request (request), or those
            that `prepare` was given (prepared).
        reference_set: Of prepared weights, and means them; None: the call's. A call has one.
        rescale: Whether values are stretched with the model's baseline for the layer; default False.
        with_question: Whether question with prediction is compared with question with reference; default False.
        threshold: As in `Sbert`.
        model: As in `Smile`.
    """

    name: ClassVar[Literal["bertscore"]] = "bertscore"
    measure: Measure | None = None
    layer: int | None = None
    idf: Corpus | None = None
    reference_set: str | None = None
    rescale: bool | None = None
    with_question: bool | None = None
    threshold: float | None = None
    model: str | None = None
