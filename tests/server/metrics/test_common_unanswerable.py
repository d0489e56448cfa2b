"""With every metric, an answer to a question without an answer is right if it abstains, and needs no model."""

from typing import Any

import pytest

from gradewire_server.domain.items import Item, MetricResult, Pair, Status
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.matching.exact_match import SquadParameters
from gradewire_server.metrics.registry import REGISTRY

NEED_REFERENCES = {"cider", "vqa_accuracy", "soft_vqa_accuracy"}
WITHOUT_VERDICT = {"token_f1", "rouge_l", "bleu", "meteor", "sbert", "sfve", "bertscore"}
GRADING = pytest.mark.parametrize("name", sorted(REGISTRY.keys() - NEED_REFERENCES))


def grade(name: str, prediction: str, parameters: dict[str, Any] | None = None, **fields: Any) -> MetricResult:
    """Run a program that must not request anything."""
    metric = REGISTRY[name]
    item = Item("1", "Who?", fields.pop("references", ()), prediction, answerable=False, **fields)
    program = metric.score(item, metric.parameters_type(**(parameters or {})), NO_MODEL)
    with pytest.raises(StopIteration) as stopped:
        next(program)
    result = stopped.value.value
    assert isinstance(result, MetricResult)
    return result


@GRADING
def test_an_abstention_is_right_and_anything_else_is_wrong(name: str) -> None:
    right, wrong = MetricResult(1.0, correct=True), MetricResult(0.0, correct=False)
    if name in WITHOUT_VERDICT:  # a share of right answers would count only some of the items
        right, wrong = MetricResult(1.0), MetricResult(0.0)
    assert grade(name, "The passage does not say.") == grade(name, "") == grade(name, "\u200b ") == right
    assert grade(name, "Paris") == grade(name, "nobody") == grade(name, "no") == wrong
    assert grade(name, "It does not say, but probably Paris") == wrong


@pytest.mark.parametrize("name", ["sbert", "sfve", "bertscore"])
def test_a_threshold_gives_a_verdict(name: str) -> None:
    assert grade(name, "unknown", {"threshold": 0.5}) == MetricResult(1.0, correct=True)


@GRADING
@pytest.mark.parametrize("field", ["references", "synthetic_answers"])
def test_right_answers_contradict_it(name: str, field: str) -> None:
    result = grade(name, "Paris", **{field: ("Paris",)})
    assert result.status is Status.INVALID_INPUT
    assert result.message == f"{field}: must be empty if answerable=false. Leave out {field}, or leave out answerable"


@pytest.mark.parametrize("name", sorted(NEED_REFERENCES))
def test_metrics_over_several_references_say_which_to_use(name: str) -> None:
    result = grade(name, "")
    assert result.status is Status.INVALID_INPUT
    assert result.message.startswith(f"answerable: {name} needs references")
    assert "exact_match, token_f1" in result.message


@pytest.mark.parametrize("name", ["exact_match", "token_f1"])
@pytest.mark.parametrize(("prediction", "right"), [("", 1), ("The.", 1), ("?!", 1), ("unknown", 0), ("theatre", 0)])
def test_blank_is_the_official_definition(name: str, prediction: str, right: float) -> None:
    assert grade(name, prediction, {"abstention": "blank"}).score == right


@pytest.mark.parametrize("name", ["exact_match", "token_f1", "rouge_l"])
def test_with_answer_final_only_the_final_answer_counts(name: str) -> None:
    final = {"answer": "final"}
    assert grade(name, "It could be Lyon.\n<answer>unknown</answer>", final).score == 1
    assert grade(name, "The text does not say.\n<answer>Paris</answer>", final).score == 0
    assert grade(name, "\\boxed{\u200b}", final).score == grade(name, " ", final).score == 1
    assert grade(name, "<think>It could be", final).status is Status.EMPTY_PREDICTION


def test_features_need_references() -> None:
    assert grade("correctness", "", {"features_only": True}).status is Status.INVALID_INPUT


def test_an_answerable_item_without_references_is_told_of_the_field() -> None:
    metric = REGISTRY["exact_match"]
    with pytest.raises(StopIteration) as stopped:
        next(metric.score(Item("1", "", (), "a"), SquadParameters(), NO_MODEL))
    assert "set answerable=false if the question has no answer" in stopped.value.value.message


def test_pairs_are_always_answerable() -> None:
    assert Pair("1", "", (), "a", rival="b").answerable
