"""sBERT: cosine of the sentence vectors of prediction and reference.

Source: Reimers and Gurevych 2019, "Sentence-BERT"; the baseline of that name in the SMILE paper.
"""

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelFacts
from gradewire_server.domain.needs import Embed, Preparation, Program, Tier, ask
from gradewire_server.domain.result import Failure, MetricResult, Warning  # noqa: A004 - the domain's word for it
from gradewire_server.metrics.checks import check_item, check_references
from gradewire_server.metrics.parameters import MODEL_INFO, THRESHOLD_INFO, SbertParameters
from gradewire_server.metrics.rounds import ask_together
from gradewire_server.metrics.ties import first_of_the_highest


class Sbert:
    """Largest cosine of prediction and references, both raw; equal ones: the lowest reference index."""

    info = MetricInfo(
        name="sbert",
        version=1,
        description="Largest cosine of the sentence vectors of prediction and references.",
        minimum=-1.0,
        maximum=1.0,
        higher_is_better=True,
        citation="Reimers and Gurevych 2019, Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks, EMNLP",
        parameters=(MODEL_INFO, THRESHOLD_INFO),
        needs_model=True,
    )
    parameters_type = SbertParameters

    def score(self, item: Item, parameters: SbertParameters, facts: ModelFacts) -> Program:
        """One round: the prediction and its references."""
        del facts
        failure = check_item(item)
        if failure is not None:
            return MetricResult.failed(failure)
        answers = yield from ask_together(
            Embed(parameters.model, (item.prediction,), Tier.PREDICTION),
            Embed(parameters.model, item.references, Tier.REFERENCE),
        )
        if isinstance(answers, Failure):
            return MetricResult.failed(answers)
        prediction, references = answers
        cosines = (references.values @ prediction.values[0]).clip(-1.0, 1.0)
        best = first_of_the_highest(cosines)
        cut = bool(prediction.truncated.any() or references.truncated.any())
        score = float(cosines[best])
        return MetricResult(
            score=score,
            warnings=(Warning.TRUNCATED,) if cut else (),
            matched_reference=best,
            correct=None if parameters.threshold is None else score >= parameters.threshold,
        )

    def prepare(self, entry: ReferenceEntry, parameters: SbertParameters) -> Preparation:
        """Asks for the references."""
        failure = check_references(entry.references)
        if failure is not None:
            return failure
        vectors = yield from ask(Embed(parameters.model, entry.references, Tier.REFERENCE))
        return vectors if isinstance(vectors, Failure) else None
