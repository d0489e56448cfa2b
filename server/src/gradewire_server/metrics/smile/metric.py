"""SMILE: sentence similarity, best keyword window and exact words in one score.

Source: "SMILE: A Composite Lexical-Semantic Metric for Question-Answering Evaluation"; docs/reference/metrics.md
settles what it leaves open.
"""

from gradewire_server.domain.items import Failure, Item, MetricResult, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.metrics.common import check_item, check_references, embed_references
from gradewire_server.metrics.smile.formula import grade
from gradewire_server.metrics.smile.parameters import SmileParameters, SmilePreset
from gradewire_server.metrics.smile.rounds import gather
from gradewire_server.metrics.smile.texts import reference_sentences, smile_texts
from gradewire_server.metrics.smile.whole_answer import gather_long
from gradewire_server.metrics.text.normalise import lemmatizer, normalise


class Smile:
    """The metric `smile` with its presets."""

    info = MetricInfo(
        name="smile",
        version=1,
        description="Sentence similarity, best keyword window and exact words in one score; correct from 2/3.",
        minimum=-1.0,
        citation="SMILE: A Composite Lexical-Semantic Metric for Question-Answering Evaluation, 2025",
        needs_model=True,
    )
    parameters_type = SmileParameters

    def __init__(self) -> None:
        lemmatizer()  # read the dictionary at start, not under the first answer

    def score(self, item: Item, parameters: SmileParameters, metadata: ModelMetadata) -> Program:
        """One round; two where `fast` ranks windows or a reference stands in the prediction word for word.

        One more round before them where synthetic answers are prepared ones; `whole` has more for long answers, one
        for each piece.
        """
        failure = check_item(item)
        if failure is not None:
            return MetricResult.failed(failure)
        sentences = yield from reference_sentences(
            parameters.synthetic, item.question, item.references, item.synthetic_answers
        )
        if isinstance(sentences, Failure):
            return MetricResult.failed(sentences)
        if parameters.preset is SmilePreset.WHOLE:
            found = yield from gather_long(item, sentences, parameters, rough_error=metadata.rough_cosine_error)
            return MetricResult.failed(found) if isinstance(found, Failure) else grade(*found, parameters, item)
        texts = smile_texts(item.prediction, item.references, sentences)
        similarities = yield from gather(texts, parameters, rough_error=metadata.rough_cosine_error)
        if isinstance(similarities, Failure):
            return MetricResult.failed(similarities)
        return grade(texts, similarities, parameters, item)

    def prepare(self, entry: ReferenceEntry, parameters: SmileParameters) -> Preparation:
        """Asks for the sentence and the keywords of every reference."""
        failure = check_references(entry.references)
        if failure is not None:
            return failure
        sentences = yield from reference_sentences(
            parameters.synthetic, entry.question, entry.references, entry.synthetic_answers
        )
        if isinstance(sentences, Failure):
            return sentences
        keywords = tuple(normalise(reference).text for reference in entry.references)
        return (yield from embed_references(parameters.model, sentences + keywords))
