"""Answers that are longer than the default encoder reads: `correctness` finds what stands at their end."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradewire import CorrectnessParts, Scorer, ScoreWarning
from gradewire.results import MetricScore

ONLY = "correctness?features_only=true&grader=none"
QUESTION = "Of what did the founder die?"
REFERENCE = "a heart attack"
ANSWER = "The founder died of cardiac arrest in his sleep."
_NOTES = (
    "the filing describes revenue in each segment over the year and lists the leases that were renewed while auditors "
    "looked at the valuation of goodwill and the board approved a new plan for shares and the pension of directors"
)


@pytest.fixture(scope="module")
def scorer(minilm: Path) -> Iterator[Scorer]:
    with Scorer.embedded(model_repository=minilm, disk_directory="") as scorer:
        yield scorer


def notes(words: int, seed: int = 0) -> str:
    drawn = random.Random(seed)  # noqa: S311 - a sample, not a secret
    return " ".join(drawn.choice(_NOTES.split()) + ("." if drawn.random() < 0.07 else "") for _ in range(words))


def text(words: int, answer: str = ANSWER, *, behind: int = 20) -> str:
    """Notes of so many words, the answer in their last tenth."""
    return f"{notes(words - behind - len(answer.split()))}. {answer} {notes(behind, 1)}."


def graded(scorer: Scorer, prediction: str, metric: str = ONLY) -> MetricScore:
    item = {"question": QUESTION, "references": [REFERENCE], "prediction": prediction}
    return scorer.score([item], metric)[0].scores[metric.partition("/")[0]]


def terms(scorer: Scorer, prediction: str) -> CorrectnessParts:
    parts = graded(scorer, prediction).parts
    assert isinstance(parts, CorrectnessParts)
    return parts


@pytest.mark.parametrize("words", [400, 900, 1_900])
def test_a_right_answer_in_the_last_tenth_is_found(scorer: Scorer, words: int) -> None:
    without, with_it = terms(scorer, notes(words)), terms(scorer, text(words))
    assert with_it.sentence > without.sentence + 0.02
    assert with_it.keyword > without.keyword + 0.1
    assert {"cardiac", "arrest"} & set(with_it.best_window.split())
    assert not graded(scorer, text(words)).warnings
    # SMILE's own presets keep to what the encoder reads at once, and say so.
    (smile,) = scorer.score([{"references": [REFERENCE], "prediction": text(words)}], "smile")[0].scores.values()
    assert ScoreWarning.TRUNCATED in smile.warnings


@pytest.mark.parametrize("words", [400, 1_900])
def test_words_in_the_last_tenth_speak_for_an_answer(scorer: Scorer, words: int) -> None:
    said = text(words, "The founder died in his sleep, of a heart attack.")
    found = graded(scorer, said, "correctness")
    left_out = graded(scorer, notes(words), "correctness")
    # The grader does not read to the end, but the sentence that mentions the reference.
    assert ScoreWarning.TRUNCATED not in found.warnings
    assert found.score is not None
    assert left_out.score is not None
    assert found.score > left_out.score + 0.1


def test_what_does_not_belong_there_is_not_found(scorer: Scorer) -> None:
    """Reading on looks at more windows, and none of notes alone comes close."""
    short, long = terms(scorer, notes(150)), terms(scorer, notes(1_900))
    assert long.keyword < short.keyword + 0.08
    assert long.sentence < short.sentence + 0.08


def test_sfve_compares_answers_behind_the_end_of_a_long_question(scorer: Scorer) -> None:
    asked = {"question": f"{notes(400)}. {QUESTION}", "references": [REFERENCE]}
    items = [asked | {"prediction": said} for said in ("a heart attack", "cardiac arrest", "a car accident")]
    same, right, wrong = (item.scores["sfve"] for item in scorer.score(items, "sfve"))
    assert [each.warnings for each in (same, right, wrong)] == [(ScoreWarning.TRUNCATED,)] * 3
    assert same.score == pytest.approx(1.0, abs=1e-6)
    assert right.score is not None
    assert wrong.score is not None
    assert 0.999 > right.score > wrong.score


def test_only_what_is_not_read_is_truncated(scorer: Scorer) -> None:
    assert not graded(scorer, notes(2_048)).warnings
    assert graded(scorer, notes(2_100)).warnings == (ScoreWarning.TRUNCATED,)


def test_what_the_grader_did_not_read_is_truncated(scorer: Scorer) -> None:
    assert ScoreWarning.TRUNCATED not in graded(scorer, text(1_900), "correctness").warnings
    # A single sentence that is longer than the grader reads has no part that it could read instead.
    endless = text(1_900).replace(".", "")
    assert ScoreWarning.TRUNCATED in graded(scorer, endless, "correctness").warnings
    assert ScoreWarning.TRUNCATED not in graded(scorer, endless, "correctness?grader=none").warnings


def test_a_long_answer_has_one_score_alone_and_among_others(scorer: Scorer, minilm: Path) -> None:
    predictions = [text(words) for words in (30, 400, 700)]
    items = [{"question": QUESTION, "references": [REFERENCE], "prediction": each} for each in predictions]
    with Scorer.embedded(model_repository=minilm, disk_directory="") as cold:
        together = [item.scores["correctness"].score for item in cold.score(items, "correctness")]
    for prediction, score in zip(predictions, together, strict=True):
        assert graded(scorer, prediction, "correctness").score == pytest.approx(score, abs=2e-4)
