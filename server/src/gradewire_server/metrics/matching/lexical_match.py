"""Lexical match: a reference occurs in the prediction as whole words.

Source: KNVQA-Eval, section on lexical matching (rule i), with the normalisation of open-domain question answering as in
Kamalloo et al. 2023, "Evaluating Open-Domain Question Answering in the Era of Large Language Models".
"""

from dataclasses import dataclass

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelFacts, PlainParameters
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.result import MetricResult
from gradewire_server.metrics.checks import check_item, check_references
from gradewire_server.metrics.matching.exact_match import squad_normalise
from gradewire_server.metrics.text.word_split import split_words


@dataclass(frozen=True, slots=True)
class LexicalMatchParameters(PlainParameters):
    """`lexical_match` has no parameters."""


def _padded(text: str) -> str:
    return f" {' '.join(split_words(squad_normalise(text)))} "


class LexicalMatch:
    """1 if a reference occurs in the prediction, else 0; the first that does is named."""

    info = MetricInfo(
        name="lexical_match",
        version=1,
        description="1 if a reference occurs in the prediction as consecutive whole words, SQuAD-normalised, else 0.",
        minimum=0.0,
        maximum=1.0,
        higher_is_better=True,
        citation="KNVQA: A Benchmark for evaluation knowledge-based VQA, 2023; Kamalloo et al. 2023, ACL",
        parameters=(),
        needs_model=False,
    )
    parameters_type = LexicalMatchParameters

    def score(self, item: Item, parameters: LexicalMatchParameters, facts: ModelFacts) -> Program:
        """Asks for nothing."""
        del parameters, facts
        yield from ()
        failure = check_item(item)
        if failure is not None:
            return MetricResult.failed(failure)
        prediction = _padded(item.prediction)
        for index, reference in enumerate(item.references):
            if _padded(reference) in prediction:
                return MetricResult(score=1.0, matched_reference=index, correct=True)
        return MetricResult(score=0.0, correct=False)

    def prepare(self, entry: ReferenceEntry, parameters: LexicalMatchParameters) -> Preparation:
        """Asks for nothing."""
        del parameters
        yield from ()
        return check_references(entry.references)
