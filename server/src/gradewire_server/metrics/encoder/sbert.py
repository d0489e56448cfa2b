"""Metric `sbert`: the cosine between sentence vectors."""

import numpy as np

from gradewire_server.domain.items import Item, MetricResult, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Preparation, Program, Vectors
from gradewire_server.metrics.common import (
    EncoderParameters,
    ask_together,
    cut_warning,
    embed_references,
    first_of_the_highest,
    is_cut,
    preparing,
    scoring,
    sentence_needs,
)


def closest_reference(prediction: Vectors, references: Vectors, threshold: float | None) -> MetricResult:
    """Return the largest cosine between the prediction and a reference; ties go to the first reference.

    Without a `threshold`, there is no verdict.
    """
    # Not `clip`, which checks its arguments for longer than it clips.
    cosines = np.minimum(np.maximum(references.values @ prediction.values[0], -1.0), 1.0)
    best = first_of_the_highest(cosines)
    score = float(cosines[best])
    return MetricResult(
        score=score,
        warnings=cut_warning(is_cut(prediction, references)),
        matched_reference=best,
        correct=None if threshold is None else score >= threshold,
    )


class Sbert:
    """The largest cosine between the prediction and a reference; ties go to the first reference."""

    info = MetricInfo(
        name="sbert",
        version=1,
        description="Largest cosine between the sentence vectors of the prediction and a reference.",
        minimum=-1.0,
        has_verdict=False,
        citation="Reimers and Gurevych 2019, Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks, EMNLP",
        needs_model=True,
    )
    parameters_type = EncoderParameters

    @scoring
    def score(self, item: Item, parameters: EncoderParameters, metadata: ModelMetadata) -> Program:
        """Grade in one round."""
        del metadata
        needs = sentence_needs(parameters.model, item.prediction, item.references)
        prediction, references = yield from ask_together(*needs)
        return closest_reference(prediction, references, parameters.threshold)

    @preparing
    def prepare(self, entry: ReferenceEntry, parameters: EncoderParameters) -> Preparation:
        """Request the references' vectors."""
        return (yield from embed_references(parameters.model, entry.references))
