"""SMILE: sentence similarity, best keyword window and exact words in one score.

Source: "SMILE: A Composite Lexical-Semantic Metric for Question-Answering Evaluation"; docs/reference/metrics.md
settles open details. All defaults are in types.proto at `SmileParameters`.
"""

from gradewire_proto.choices import SmilePreset, SyntheticMode
from gradewire_server.domain.items import Failure, Item, ReferenceEntry, Status, shortened
from gradewire_server.domain.metric import MetricInfo, ModelMetadata
from gradewire_server.domain.needs import Preparation, PreparedSynthetic, Program, Rounds, ask
from gradewire_server.metrics.common import (
    FailureError,
    embed_references,
    expect,
    preparing,
    scoring,
    stop_at,
)
from gradewire_server.metrics.smile.formula import SmileParameters, grade
from gradewire_server.metrics.smile.rounds import gather
from gradewire_server.metrics.smile.texts import check_synthetic, smile_texts
from gradewire_server.metrics.smile.whole_answer import gather_long
from gradewire_server.metrics.text.normalise import lemmatizer, normalise


class Smile:
    """The metric `smile` with its presets."""

    info = MetricInfo(
        name="smile",
        version=1,
        description="Sentence similarity, best keyword window and exact words in one score. An answer is correct if it "
        "scores 2/3 or more.",
        minimum=-1.0,
        citation="SMILE: A Composite Lexical-Semantic Metric for Question-Answering Evaluation, 2025",
        needs_model=True,
    )
    parameters_type = SmileParameters

    def __init__(self) -> None:
        lemmatizer()  # read the dictionary at start, not during the first answer

    @scoring
    def score(self, item: Item, parameters: SmileParameters, metadata: ModelMetadata) -> Program:
        """Grade in one or two rounds. Prepared synthetic answers add a round, and `whole` adds a round per piece."""
        sentences = yield from reference_sentences(
            parameters.synthetic, item.question, item.references, item.synthetic_answers
        )
        if parameters.preset is SmilePreset.WHOLE:
            found = yield from gather_long(item, sentences, parameters, rough_error=metadata.rough_cosine_error)
            return grade(*found, parameters, item)
        texts = smile_texts(item.prediction, item.references, sentences)
        similarities = yield from gather(texts, parameters, rough_error=metadata.rough_cosine_error)
        return grade(texts, similarities, parameters, item)

    @preparing
    def prepare(self, entry: ReferenceEntry, parameters: SmileParameters) -> Preparation:
        """Request the vectors of the references' sentences and keywords."""
        sentences = yield from reference_sentences(
            parameters.synthetic, entry.question, entry.references, entry.synthetic_answers
        )
        keywords = tuple(normalise(reference).text for reference in entry.references)
        return (yield from embed_references(parameters.model, sentences + keywords))


def reference_sentences(
    mode: SyntheticMode, question: str, references: tuple[str, ...], inline: tuple[str, ...]
) -> Rounds[tuple[str, ...]]:
    """Return each reference's sentence according to `mode`.

    Raises:
        FailureError: `inline` does not match the references (INVALID_INPUT), or a prepared answer is missing
            (NOT_PREPARED).
    """
    if mode is SyntheticMode.NONE:
        return references
    if mode is SyntheticMode.INLINE:
        stop_at(check_synthetic(references, inline))
        return inline
    prepared = yield from expect(ask(PreparedSynthetic(question, references)))
    found = tuple(answer for answer in prepared if answer is not None)
    if len(found) == len(references):
        return found
    missing = ", ".join(f"references[{index}]" for index, answer in enumerate(prepared) if answer is None)
    raise FailureError(
        Failure(
            Status.NOT_PREPARED,
            f"reference_set: the set has no synthetic answer for {shortened(missing)} of this question; check the "
            "set's name, or first prepare the question (References.Prepare or `gradewire prepare FILE`)",
        )
    )
