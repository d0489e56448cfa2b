"""sBERT: cosine of the sentence vectors of prediction and reference.

Source: Reimers and Gurevych 2019, "Sentence-BERT"; the baseline of that name in the SMILE paper.
"""

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.result import Failure, MetricResult
from gradewire_server.metrics.checks import check_item, check_references
from gradewire_server.metrics.embedding.closest_reference import closest_reference
from gradewire_server.metrics.parameters import EncoderParameters
from gradewire_server.metrics.rounds import ask_together, embed_references, sentence_needs


class Sbert:
    """Largest cosine of prediction and references, both raw; equal ones: the lowest reference index."""

    info = MetricInfo(
        name="sbert",
        version=1,
        description="Largest cosine of the sentence vectors of prediction and references.",
        minimum=-1.0,
        citation="Reimers and Gurevych 2019, Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks, EMNLP",
        needs_model=True,
    )
    parameters_type = EncoderParameters

    def score(self, item: Item, parameters: EncoderParameters, metadata: ModelMetadata) -> Program:
        """One round: the prediction and its references."""
        del metadata
        failure = check_item(item)
        if failure is not None:
            return MetricResult.failed(failure)
        answers = yield from ask_together(*sentence_needs(parameters.model, item.prediction, item.references))
        if isinstance(answers, Failure):
            return MetricResult.failed(answers)
        prediction, references = answers
        return closest_reference(prediction, references, parameters.threshold)

    def prepare(self, entry: ReferenceEntry, parameters: EncoderParameters) -> Preparation:
        """Asks for the references."""
        return check_references(entry.references) or (yield from embed_references(parameters.model, entry.references))
