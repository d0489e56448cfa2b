"""Soft VQA accuracy: VQA accuracy with character similarity in place of equality.

Source: Hu et al. 2022, "PromptCap", as a baseline of LAVE (section 5.1): 1 - character error rate, at least 0.
"""

from typing import Final

from rapidfuzz.distance import Levenshtein
from typing_extensions import override

from gradewire_proto.parts import VqaParts
from gradewire_server.domain.items import Item, MetricResult
from gradewire_server.domain.metric import MetricInfo
from gradewire_server.metrics.common import cut_warning
from gradewire_server.metrics.matching.vqa_accuracy import (
    VqaAccuracy,
    VqaAccuracyParameters,
    comparable,
    consensus_score,
    is_at_least,
)

MAX_CHARACTERS: Final = 4096
"""Characters of a text that are compared: the distance costs the product of both lengths."""


def character_similarity(prediction: str, reference: str) -> float:
    """1 - edit distance / length of the reference, at least 0; only the empty text is like the empty text."""
    if not reference:
        return float(not prediction)
    # One edit per character of the reference is as far as it matters: a long prediction is left early.
    limit = len(reference) - 1
    distance = Levenshtein.distance(prediction, reference, score_cutoff=limit)
    return 1 - distance / len(reference) if distance <= limit else 0.0


class SoftVqaAccuracy(VqaAccuracy):
    """As `vqa_accuracy`, each annotator agreeing by 1 - character error rate; the first of the closest is named.

    Without `verdict_cut` there is no verdict.
    """

    info = MetricInfo(
        name="soft_vqa_accuracy",
        version=2,
        description="VQA accuracy with 1 - character error rate in place of equality; all references count.",
        citation="Hu et al. 2022, PromptCap: Prompt-Guided Task-Aware Image Captioning",
    )

    @override
    def grade(self, item: Item, parameters: VqaAccuracyParameters) -> MetricResult:
        prediction, references = comparable(item, parameters)
        truncated = max(map(len, (prediction, *references))) > MAX_CHARACTERS
        shortened = prediction[:MAX_CHARACTERS]
        distinct = {
            reference: character_similarity(shortened, reference[:MAX_CHARACTERS]) for reference in set(references)
        }
        agreements = [distinct[reference] for reference in references]
        score = consensus_score(agreements, parameters.consensus)
        closest = max(agreements)
        return MetricResult(
            score=score,
            warnings=cut_warning(truncated),
            matched_reference=agreements.index(closest) if closest else None,
            parts=VqaParts(references.count(prediction), len(references), prediction),
            correct=None if parameters.verdict_cut is None else is_at_least(score, parameters.verdict_cut),
        )
