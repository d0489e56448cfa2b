"""Easy match: a reference occurs in the prediction as whole words, after SMILE's normalisation.

Source: SMILE, section on baselines ("can be found within the model response"); METRICS "Baselines".
"""

from collections.abc import Iterable, Iterator

from gradewire_server.domain.item import Item, ReferenceEntry
from gradewire_server.domain.metric import MetricInfo, ModelFacts
from gradewire_server.domain.needs import Preparation, Program
from gradewire_server.domain.result import MetricResult
from gradewire_server.metrics.checks import check_item, check_references
from gradewire_server.metrics.parameters import EasyMatchParameters
from gradewire_server.metrics.text.words import Normalised, normalise


def contained(prediction: Normalised, references: Iterable[Normalised]) -> Iterator[bool]:
    """Whether each reference's words stand in the prediction one after another ("art" is not in "party")."""
    whole = f" {' '.join(prediction.words)} "
    return (f" {' '.join(reference.words)} " in whole for reference in references)


class EasyMatch:
    """1 if a reference occurs in the prediction, else 0; the matched reference is named where there is one."""

    info = MetricInfo(
        name="easy_match",
        version=1,
        description="1 if a reference occurs in the prediction as consecutive whole words, SMILE-normalised, else 0.",
        minimum=0.0,
        maximum=1.0,
        higher_is_better=True,
        citation="SMILE: A Composite Lexical-Semantic Metric for Question-Answering Evaluation, 2025, baselines",
        parameters=(),
        needs_model=False,
    )
    parameters_type = EasyMatchParameters

    def score(self, item: Item, parameters: EasyMatchParameters, facts: ModelFacts) -> Program:
        """Asks for nothing."""
        del parameters, facts
        yield from ()
        failure = check_item(item)
        if failure is not None:
            return MetricResult.failed(failure)
        found = contained(normalise(item.prediction), map(normalise, item.references))
        for index, stands_in_it in enumerate(found):
            if stands_in_it:
                return MetricResult(score=1.0, matched_reference=index, correct=True)
        return MetricResult(score=0.0, correct=False)

    def prepare(self, entry: ReferenceEntry, parameters: EasyMatchParameters) -> Preparation:
        """Asks for nothing."""
        del parameters
        yield from ()
        return check_references(entry.references)
