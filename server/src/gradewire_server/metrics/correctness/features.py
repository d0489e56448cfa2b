"""Compute an item's features and its input kind from the texts and SMILE's terms."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log1p, nan
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from gradewire_proto.choices import SmilePreset
from gradewire_proto.parts import SmileParts
from gradewire_server.domain.items import Item
from gradewire_server.domain.needs import Rounds
from gradewire_server.metrics.correctness.asked_roles import role_reversed
from gradewire_server.metrics.correctness.claims import claim_of
from gradewire_server.metrics.correctness.denials import affirms_what_is_not, denies, verdict_features
from gradewire_server.metrics.correctness.focus import Focus
from gradewire_server.metrics.correctness.hedges import alternatives
from gradewire_server.metrics.correctness.mentions import mention_features, states_elsewhere
from gradewire_server.metrics.correctness.outcomes import outcome_reversed
from gradewire_server.metrics.correctness.refusals import refusal_features
from gradewire_server.metrics.correctness.relations import relation_features
from gradewire_server.metrics.correctness.sentences import asking
from gradewire_server.metrics.correctness.subjects import subject_features
from gradewire_server.metrics.correctness.symbols import name_altered, symbol_altered
from gradewire_server.metrics.correctness.words import (
    MAX_CHARACTERS,
    MAX_REFERENCE_CHARACTERS,
    MAX_WORDS,
    NOBODY,
    STOP_WORDS,
    VOCABULARY,
    FeatureText,
    found_forms,
    missing_features,
    recall,
    share,
    spelling_features,
)
from gradewire_server.metrics.matching.value_match import match_references, vetoes_text_match
from gradewire_server.metrics.matching.vqa_accuracy import vqa_normalise
from gradewire_server.metrics.smile.formula import PRESET_WEIGHT, SmileParameters, grade
from gradewire_server.metrics.smile.texts import full_texts
from gradewire_server.metrics.smile.whole_answer import gather_to_the_end
from gradewire_server.metrics.values.identifiers import identifier_conflict
from gradewire_server.metrics.values.matching import ValueMatch, ValueMatcher
from gradewire_server.metrics.values.notations import rewritten
from gradewire_server.metrics.values.results import result_conflict
from gradewire_server.metrics.values.value_readings import value_doubts

RULED_OUT: Final = 0.4
"""Maximum p(right) for an answer that a rule calls wrong."""

_SENTENCE_WEIGHT: Final = PRESET_WEIGHT[SmilePreset.ONE_PASS]

_YES_NO: Final = frozenset(VOCABULARY["words"]["asks_yes_no"].split())
_VERDICTS: Final = frozenset({"yes", "no", "true", "false", "valid", "invalid"})
_QUESTION_WORDS: Final = {
    "asks_who": re.compile(r"\b(?:who|whom|whose)\b"),
    "asks_when": re.compile(r"\bwhen\b|\b(?:what|which|in) (?:year|date|day|month|century|decade)\b"),
    "asks_where": re.compile(r"\bwhere\b|\b(?:what|which) (?:country|city|state|town|place)\b"),
    "asks_amount": re.compile(r"\bhow (?:many|much|long|old|far|often|tall|big|high|large|deep|fast)\b"),
    "asks_why": re.compile(
        r"\bwhy\b|\bhow (?:do|does|did|can|could|would|is|are|was|were|come)\b|\b(?:explain|describe)\b"
    ),
    "asks_what": re.compile(r"\b(?:what|which)\b"),
}

INPUT_KIND: Final = (
    "no_question",  # 1 without a question
    *_QUESTION_WORDS,  # 1 for the first pattern that the question matches; "what" comes last
    "asks_yes_no",  # 1 if the question begins with "is", "did" and the like
    "question_words",  # ln(1 + words)
    "references",  # ln(1 + references)
    "reference_words",  # ln(1 + words) of SMILE's best reference
    "reference_digits",  # share of the reference's words that contain a digit
    "reference_plain",  # share of articles, pronouns and the like: sentences contain them, names do not
    "reference_verdict",  # 1 if the reference begins with "yes", "no", "true" or the like
    "answer_words",  # ln(1 + words)
)
"""Names of the numbers that describe an item's input kind."""

_MAX_COMPARED_REFERENCES: Final = 8

MAX_REFERENCES_CHARACTERS: Final = 8_192
"""Maximum number of characters to use from all references together."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature, and its constraints in a fit.

    Attributes:
        monotone: 1 if the probability must not fall as the value grows, -1 if it must not rise, 0 if both are allowed.
        width: Minimum width of ramps at splits (see `SoftTrees`); 0 for features that do not depend on vectors.
        rules_out: True if a value of at least 1 makes an answer wrong, whatever the trees return.
        doubts: True if a value of at least 1 makes the verdict "right" uncertain.
    """

    name: str
    monotone: int
    width: float = 0.0
    rules_out: bool = False
    doubts: bool = False


FEATURES: Final = tuple(Feature(name, **promises) for name, promises in VOCABULARY["features"].items())
GRADER: Final = Feature("grader", 1, 0.25)
VOTE_FEATURES: Final = (Feature("votes", 1), Feature("votes_top", 0))
"""Additional features if the references are annotators' votes."""


def features_of(grader: str, *, votes: bool = False) -> tuple[Feature, ...]:
    """Return the features, with those of votes if requested, and the grader's logit at the end unless it is empty."""
    return (*FEATURES, *(VOTE_FEATURES if votes else ()), *((GRADER,) if grader else ()))


@dataclass(frozen=True, slots=True)
class CorrectnessInputs:
    """An item with SMILE's score and terms.

    Attributes:
        item: The item with the answer's claim as its prediction.
        best: Index of SMILE's best reference.
        unclear: True if the answer states a reference outside what seemed to be its claim. `item` has all of it then.
    """

    item: Item
    truncated: bool
    best: int
    smile: float
    terms: SmileParts
    unclear: bool = False


def gather_inputs(item: Item, model: str) -> Rounds[CorrectnessInputs]:
    """Request SMILE's needs for a checked item, and read a long answer in pieces.

    Embed windows in context, and omit the question. Together, these two choices save most of SMILE's cost
    (benchmarks/latency/correctness_cost.py).
    """
    unclear = False
    if not _is_a_reference(item):
        claim = claim_of(item.prediction)
        unclear = claim.around != "" and states_elsewhere(item.question, item.references, *claim)
        item = replace(item, prediction=claim.around if unclear else claim.text)
    parameters = _smile_parameters(model)
    end = len(item.prediction) - len(item.prediction.lstrip()) + MAX_CHARACTERS
    texts = full_texts(item.prediction, item.references, end=end, most_words=MAX_WORDS)
    similarities = yield from gather_to_the_end(texts, parameters, end=end)
    smile = grade(texts, similarities, parameters)
    if smile.score is None or smile.matched_reference is None or not isinstance(smile.parts, SmileParts):
        raise TypeError("SMILE's formula returned no score or no parts")
    return CorrectnessInputs(
        item=item,
        truncated=similarities.truncated,
        best=smile.matched_reference,
        smile=smile.score,
        terms=smile.parts,
        unclear=unclear,
    )


@lru_cache(maxsize=64)
def _smile_parameters(model: str) -> SmileParameters:
    return SmileParameters(model=model, preset=SmilePreset.ONE_PASS, sentence_weight=_SENTENCE_WEIGHT)


def _is_a_reference(item: Item) -> bool:
    """Return True if an answer is a reference word for word, so that it needs no search for its claim."""
    said = item.prediction.strip().casefold()
    return any(said == reference.strip().casefold() for reference in item.references)


def input_kind(inputs: CorrectnessInputs) -> NDArray[np.float64]:
    """Return the numbers of INPUT_KIND, float64[len(INPUT_KIND)], all finite and at most 10."""
    question, answer = FeatureText.shared(inputs.item.question), FeatureText.of(inputs.item.prediction)
    reference = FeatureText.shared(inputs.item.references[inputs.best], MAX_REFERENCE_CHARACTERS)
    found = {
        "no_question": float(not question.words),
        **_question_word(question),
        "question_words": log1p(len(question.words)),
        "references": log1p(len(inputs.item.references)),
        "reference_words": log1p(len(reference.words)),
        "reference_digits": share(any(map(str.isdecimal, word)) for word in reference.words),
        "reference_plain": share(word in STOP_WORDS for word in reference.words),
        "reference_verdict": float(reference.words[0] in _VERDICTS),
        "answer_words": log1p(len(answer.words)),
    }
    return np.array([found[name] for name in INPUT_KIND])


def _question_word(question: FeatureText) -> dict[str, float]:
    text = " ".join(question.raw.casefold().split())
    yes_no = bool(text) and text.split(" ", 1)[0] in _YES_NO
    kind = next((name for name, pattern in _QUESTION_WORDS.items() if not yes_no and pattern.search(text)), "")
    return {**{name: float(name == kind) for name in _QUESTION_WORDS}, "asks_yes_no": float(yes_no)}


@dataclass(frozen=True, slots=True)
class Values:
    """Matches between an answer's values and the references' values.

    `matches` is keyed by reference index and omits references without values. `closest` is the index of the best match.
    `readings` contains the features of what an answer says about a value.
    """

    matches: dict[int, ValueMatch]
    closest: int | None
    readings: dict[str, float]

    @classmethod
    def of(cls, question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> Self:
        """Compare the answer's values with the values of each of the first `_MAX_COMPARED_REFERENCES` references."""
        said = rewritten(question.raw, answer.raw)
        matcher = ValueMatcher(question.raw, said)
        texts = [rewritten(question.raw, reference.raw) for reference in references[:_MAX_COMPARED_REFERENCES]]
        found = dict(enumerate(match_references(matcher, question.raw, said, texts)))
        matches = {position: match for position, match in found.items() if match.wanted}
        readings = {
            **value_doubts(matcher, question.raw, said, texts),
            "result_conflict": result_conflict(matcher, question.raw, said, texts),
            "identifier_conflict": identifier_conflict(question.raw, said, texts),
        }
        return cls(matches, max(matches, key=lambda position: _fit(matches[position]), default=None), readings)

    @property
    def matched(self) -> int | None:
        """The index of a reference whose values are all in the answer, or None."""
        found = self.closest is not None and self.matches[self.closest].found == self.matches[self.closest].wanted
        return self.closest if found else None

    def features(self) -> dict[str, float]:
        """Return `readings`, and features of the reference whose values match best (NaN without values).

        Returns:
            `value_recall`: the share of the reference's values that the answer contains. `value_conflict`: the share
            that the answer replaces with a different value of the same kind and unit. `values_beside`: the number of
            additional values of these kinds in the answer.
        """
        if self.closest is None:
            return {"value_recall": nan, "value_conflict": nan, "values_beside": nan, **self.readings}
        match = self.matches[self.closest]
        return {
            "value_recall": match.found / match.wanted,
            "value_conflict": match.contradicted / match.wanted,
            "values_beside": float(match.extra),
            **self.readings,
        }


def _fit(match: ValueMatch) -> tuple[float, float]:
    return match.found / match.wanted, -match.contradicted / match.wanted


_NAMES: Final = tuple(feature.name for feature in FEATURES)


def features(inputs: CorrectnessInputs) -> NDArray[np.float64]:
    """Return all features in the order of `FEATURES`, as float64[features]. NaN means that a feature does not apply."""
    question, answer = FeatureText.shared(inputs.item.question), FeatureText.of(inputs.item.prediction)
    references = _read_references(inputs)
    values = Values.of(question, references, answer)
    if values.matched:
        references.insert(0, references.pop(values.matched))
    found = {
        "sentence": inputs.terms.sentence,
        "keyword": inputs.terms.keyword,
        "exact": inputs.terms.exact,
        **_word_features(question, references, answer),
        **values.features(),
        **_no_amount(references[0], answer),
        "claim_unclear": float(inputs.unclear),
        "value_veto": float(vetoes_text_match(inputs.item)),
        "reference_names": share(any(map(str.isupper, reference.raw)) for reference in references),
    }
    return np.array([found[name] for name in _NAMES], dtype=np.float64)


def vote_features(item: Item) -> NDArray[np.float64]:
    """Return the features of an item whose references are annotators' votes, float64[2] in [0, 1].

    `votes`: the share of annotators who gave the answer, in VQA's normal form. `votes_top`: the share of annotators who
    gave the commonest answer.
    """
    said = vqa_normalise(item.prediction)
    votes = Counter(vqa_normalise(reference) for reference in item.references)
    cast = len(item.references)
    return np.array([votes[said] / cast, max(votes.values()) / cast])


def stating_sentences(inputs: CorrectnessInputs) -> str:
    """Return the sentences of a long answer that mention a reference, with their neighbours; see `Focus`."""
    question, answer = FeatureText.shared(inputs.item.question), FeatureText.of(inputs.item.prediction)
    return Focus.of(question, _read_references(inputs), answer).surroundings.raw


def _no_amount(reference: FeatureText, answer: FeatureText) -> dict[str, float]:
    """Return the features of values for an answer such as "No cats" if the reference is 0."""
    matched = reference.words == ("0",) and not NOBODY.isdisjoint(answer.distinct)
    return {"value_recall": 1.0, "value_conflict": 0.0} if matched else {}


def _read_references(inputs: CorrectnessInputs) -> list[FeatureText]:
    read: list[FeatureText] = []
    left = MAX_REFERENCES_CHARACTERS
    for index in (inputs.best, *(index for index in range(len(inputs.item.references)) if index != inputs.best)):
        if left <= 0:
            break
        read.append(FeatureText.shared(inputs.item.references[index], min(left, MAX_REFERENCE_CHARACTERS)))
        left -= len(read[-1].raw)
    return read


def _word_features(question: FeatureText, references: Sequence[FeatureText], answer: FeatureText) -> dict[str, float]:
    asked, said, best = question.distinct, found_forms(references, answer), references[0]
    cores = [reference.core for reference in references]
    recalls = [recall(reference, said, asked) for reference in references]
    closest = sorted(range(len(references)), key=lambda index: (-recalls[index], index))[:_MAX_COMPARED_REFERENCES]
    parts = best.parts
    new = [word for word in dict.fromkeys(best.content) if word not in asked]
    focus = Focus.of(question, references, answer)
    asks = asking(question)
    relations = relation_features(references, answer, asks.distinct)
    return {
        "contained": float(any(each.spaced in answer.spaced for each in (*references, *cores))),
        "recall": max(*recalls, *(recall(core, said, asked) for core in cores)),
        "last_word": float(any(core.content[-1] in said for core in cores)),
        "new_recall": share(word in said for word in new),
        **missing_features(best, parts, said, asked),
        **relations,
        "negated": max(relations["negated"], affirms_what_is_not(asks, references, focus.surroundings)),
        **subject_features(question, references, focus.surroundings),
        "symbol_altered": symbol_altered(references, answer),
        "name_altered": name_altered(question, references, said, answer),
        "outcome_reversed": outcome_reversed(question, references, focus.statement),
        "role_reversed": role_reversed(question, references, focus.surroundings),
        **verdict_features(asks, references, focus.statement),
        **refusal_features(question, references, answer),
        **mention_features(question, references, answer, focus),
        "denied": float(denies(question, references, focus.surroundings)),
        "alternatives": alternatives(question, references, answer, focus.statement),
        **spelling_features([references[index] for index in closest], best, answer, asked),
    }
