"""Measures the features of an item, from its texts and what SMILE found in them.

All of them are made in time linear in the texts, of bounded beginnings of them: 16 384 characters and 2 048 words of
prediction and question, 512 characters of a reference, and of as many references as have 8 192 together.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gradewire_server.metrics.correctness.features.catalog import FEATURES
from gradewire_server.metrics.correctness.features.contradictions import contradiction_features
from gradewire_server.metrics.correctness.features.denials import denies
from gradewire_server.metrics.correctness.features.forms import found_forms
from gradewire_server.metrics.correctness.features.hedges import alternatives
from gradewire_server.metrics.correctness.features.inputs import CorrectnessInputs
from gradewire_server.metrics.correctness.features.missing import missing_features
from gradewire_server.metrics.correctness.features.refusals import refusal_features
from gradewire_server.metrics.correctness.features.spelling import spelling_features
from gradewire_server.metrics.correctness.features.values import Values
from gradewire_server.metrics.correctness.features.verdicts import verdict_features
from gradewire_server.metrics.correctness.features.words import (
    MAX_REFERENCE_CHARACTERS,
    Said,
    core_of,
    parts_of,
    recall,
    share,
)

MAX_REFERENCES_CHARACTERS: Final = 8_192
"""Characters of all references together that features are made of, the best one's first."""
_CANDIDATES: Final = 8
"""References whose spelling is compared."""


_NAMES: Final = tuple(feature.name for feature in FEATURES)


def features(inputs: CorrectnessInputs) -> NDArray[np.float64]:
    """All features, in the order of FEATURES.

    Returns:
        float64[len(FEATURES)]; NaN where one does not apply, as do those of the question where there is none.
    """
    question, answer = Said.of(inputs.item.question), Said.of(inputs.item.prediction)
    references = _read(inputs)
    values = Values.of(question, references, answer)
    if values.matched:
        references.insert(0, references.pop(values.matched))
    found = {
        "sentence": inputs.terms.sentence,
        "keyword": inputs.terms.keyword,
        "exact": inputs.terms.exact,
        **_of_words(question, references, answer),
        **values.features(),
        "reference_names": share(any(map(str.isupper, reference.raw)) for reference in references),
    }
    return np.array([found[name] for name in _NAMES], dtype=np.float64)


def _read(inputs: CorrectnessInputs) -> list[Said]:
    """SMILE's best reference, then the others in their order as long as there is room for their characters."""
    read: list[Said] = []
    left = MAX_REFERENCES_CHARACTERS
    for index in (inputs.best, *(index for index in range(len(inputs.item.references)) if index != inputs.best)):
        if left <= 0:
            break
        read.append(Said.of(inputs.item.references[index], min(left, MAX_REFERENCE_CHARACTERS)))
        left -= len(read[-1].raw)
    return read


def _of_words(question: Said, references: Sequence[Said], answer: Said) -> dict[str, float]:
    """`references` begin with SMILE's best one."""
    asked, said, best = question.distinct, found_forms(references, answer), references[0]
    cores = [core_of(reference) for reference in references]
    recalls = [recall(reference, said, asked) for reference in references]
    closest = sorted(range(len(references)), key=lambda index: (-recalls[index], index))[:_CANDIDATES]
    parts = parts_of(best)
    new = [word for word in dict.fromkeys(best.content) if word not in asked]
    return {
        "contained": float(any(each.spaced in answer.spaced for each in (*references, *cores))),
        "recall": max(*recalls, *(recall(core, said, asked) for core in cores)),
        "last_word": float(any(core.content[-1] in said for core in cores)),
        "new_recall": share(word in said for word in new),
        "echo": share(word in asked for word in best.content),
        "parts_least": min(recall(part, said, asked) for part in parts),
        **missing_features(best, parts, said, asked),
        **contradiction_features(best, answer, said, asked),
        **verdict_features(question, references, answer),
        **refusal_features(question, references, answer),
        "denied": float(denies(question, references, answer)),
        "alternatives": alternatives(question, references, answer),
        **spelling_features([references[index] for index in closest], best, answer, asked),
    }
