"""With answer=final, every metric without a model grades what a completion says last, as if nothing else were there."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.engines.programs import Table

from gradewire_proto import final_answer
from gradewire_proto.choices import GradedAnswer
from gradewire_proto.final_answer import MAX_READ_CHARACTERS, FinalAnswer, find_final_answer
from gradewire_proto.metric_parameters import PARAMETERS
from gradewire_server.domain.items import Item, MetricResult, Status
from gradewire_server.domain.metric import NO_MODEL, ParameterError
from gradewire_server.domain.needs import DocumentFrequencies
from gradewire_server.metrics.common import FailureError, with_graded_answer
from gradewire_server.metrics.registry import REGISTRY

OTHERS: dict[str, dict[str, Any]] = {
    "exact_match": {},
    "easy_match": {},
    "lexical_match": {},
    "value_match": {},
    "token_f1": {},
    "choice_match": {},
    "vqa_accuracy": {"normalise": "always"},
    "soft_vqa_accuracy": {"verdict_cut": 0.6},
    "rouge_l": {"stem": True},
    "bleu": {"max_ngram": 2},
    "meteor": {"synonyms": "none"},
    "cider": {},
}
METRICS = pytest.mark.parametrize("name", OTHERS)
# By completion: the answer that it asserts in the end, and two right answers.
COMPLETIONS = {
    r"<think>Lyon? No.</think>The capital of France is \boxed{Paris}.": ("Paris", ("Paris", "the city of Paris")),
    "Lyon is large.\nMarseille is older.\n\nThe answer is Paris.": ("Paris", ("Paris", "Lyon")),
    "<answer>Lyon</answer> Wait, I was wrong. <answer>Paris</answer>": ("Paris", ("Paris", "Lyon")),
    '{"reasoning": "Lyon is smaller.", "answer": "Paris"}': ("Paris", ("Paris", "Paris in France")),
    "Erst dachte ich an Lyon. Die Antwort ist Paris.": ("Paris", ("Paris", "Lyon")),
    "Lyon est grande. La réponse est Paris.": ("Paris", ("Paris", "Lyon")),
    "Lyon es grande. La respuesta es París.": ("París", ("París", "Lyon")),
    "里昂很大。答案是巴黎。": ("巴黎", ("巴黎", "里昂")),
    "It sank in 1913? No: it sailed in 1911.\n\n#### 1912": ("1912", ("1912", "April 1912")),
    "12 boxes of 3 are 36. Answer: 14 apples. Correction: 36 apples.": ("36 apples", ("36 apples", "36")),
}
UNANSWERED = {
    "<think>It could be Lyon, or": "because the completion ends during the thinking",
    "<think>Paris</think>  ": "because nothing follows the thinking",
    "Could you tell me more?": "because the completion asks a question",
    "<|im_start|>assistant\n<|im_end|>": "because the completion is empty",
    "\\boxed{\u200b}": "has a blank final answer",
}
CORPUS = DocumentFrequencies("request:9:ab", 9, {})


def grade(name: str, prediction: str, references: tuple[str, ...], **parameters: Any) -> MetricResult:
    metric = REGISTRY[name]
    given = metric.parameters_type(**OTHERS[name], **parameters)
    result = Table(corpus=CORPUS).run(metric.score(Item("1", "", references, prediction), given, NO_MODEL))
    assert isinstance(result, MetricResult)
    return result


def test_these_are_the_metrics_that_have_the_parameter() -> None:
    assert [name for name, infos in PARAMETERS.items() if "answer" in {info.name for info in infos}] == [*OTHERS]


@METRICS
@pytest.mark.parametrize("completion", COMPLETIONS)
def test_a_completion_is_graded_as_its_final_answer_alone(name: str, completion: str) -> None:
    answer, references = COMPLETIONS[completion]
    found = grade(name, completion, references, answer="final")
    assert found == grade(name, answer, references)
    without_values = name == "value_match" and not any(map(str.isdigit, answer))
    assert found.status is Status.OK or without_values or name == "choice_match"  # there are no options
    assert grade(name, answer, references, answer="final") == found, "an answer alone is its own final answer"


@METRICS
@pytest.mark.parametrize("completion", COMPLETIONS)
def test_by_default_the_whole_completion_is_graded(name: str, completion: str) -> None:
    _, references = COMPLETIONS[completion]
    assert grade(name, completion, references) == grade(name, completion, references, answer="whole")
    if name == "exact_match":
        assert grade(name, completion, references).score == 0
        assert grade(name, completion, references[:1], answer="final").score == 1


def test_a_name_on_the_way_to_the_answer_no_longer_counts() -> None:
    completion = "It might be Lyon. The answer is Paris."
    for name in ("easy_match", "lexical_match"):
        assert grade(name, completion, ("Lyon",)).score == 1
        assert grade(name, completion, ("Lyon",), answer="final").score == 0
        assert grade(name, completion, ("Paris",), answer="final").score == 1


@METRICS
@pytest.mark.parametrize("completion", UNANSWERED)
def test_a_completion_without_a_final_answer_is_as_an_empty_one(name: str, completion: str) -> None:
    blank = grade(name, " ", ("Paris in 1912", "Lyon in 1912"), answer="final")
    found = grade(name, completion, ("Paris in 1912", "Lyon in 1912"), answer="final")
    assert (found.status, found.score) == (blank.status, blank.score) == (Status.EMPTY_PREDICTION, None)
    assert found.message.startswith("prediction: ")
    assert UNANSWERED[completion] in found.message
    assert found.message.partition(". ")[2] == blank.message.partition(". ")[2] != ""


@METRICS
def test_references_are_checked_first_and_stay_whole(name: str) -> None:
    assert grade(name, "<think>", ("Paris", " "), answer="final").message.startswith("references[1]: ")
    whole = "Built in 1911. The answer is 1912."
    found = grade(name, "1912", (whole, whole), answer="final")
    assert found == grade(name, "1912", (whole, whole))
    assert found != grade(name, "1912", ("1912", "1912")) or name == "choice_match"  # there are no options


@METRICS
def test_another_choice_is_refused_by_name(name: str) -> None:
    with pytest.raises(ParameterError, match=r"^answer: must be one of whole, final, not 'last'$"):
        REGISTRY[name].parameters_type(**OTHERS[name], answer="last")


def final(prediction: str) -> str:
    return with_graded_answer(Item("1", "", ("a",), prediction), GradedAnswer.FINAL).prediction


def test_escapes_become_text_that_can_be_sent() -> None:
    assert final(r'{"answer": "\ud800x"}').strip("\N{REPLACEMENT CHARACTER}") == "x"
    assert final(r'{"answer": "\ud83c\udf89"}') == "\N{PARTY POPPER}"
    assert final(r'{"answer": "caf\u0065\u0301"}') == "café"
    with pytest.raises(FailureError) as caught:
        final('{"answer": "a' + r"\u0301" * 31 + '"}')
    assert caught.value.failure.status is Status.INVALID_INPUT
    assert caught.value.failure.message == "prediction: the final answer has more than 30 combining marks in a row"


PIECES = [*"{}<>\\\"'du8001:. \n", '{"answer": "', "\\boxed{", "<think>", "</think>", "<answer>", "\\u0301", "\u0301"]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_no_text_breaks_it(text: str) -> None:
    try:
        found = final(text)
    except FailureError as error:
        assert error.failure.status in {Status.EMPTY_PREDICTION, Status.INVALID_INPUT}  # noqa: PT017 - either is right
    else:
        assert found.encode()


def test_the_search_is_imported_only_if_a_metric_needs_it() -> None:
    code = (
        "import sys\n"
        "from gradewire_server.domain.items import Item\n"
        "from gradewire_server.domain.metric import NO_MODEL\n"
        "from gradewire_server.metrics.registry import REGISTRY\n"
        "exact = REGISTRY['exact_match']\n"
        "for answer in ('whole', 'final'):\n"
        "    list(exact.score(Item('1', '', ('a',), 'a'), exact.parameters_type(answer=answer), NO_MODEL))\n"
        "    print('gradewire_proto.final_answer.find' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False", "True"]


def test_the_metrics_of_a_request_search_a_completion_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def find(completion: str) -> FinalAnswer:
        searched.append(completion)
        return find_final_answer(completion)

    monkeypatch.setattr(final_answer, "find_final_answer", find)
    completions = ["Asked once: the answer is Paris.", "Asked once: the answer is Rome."]
    for completion in completions:
        for name in OTHERS:
            grade(name, completion, ("Paris", "Rome"), answer="final")
    assert searched == completions


def test_only_the_part_that_is_read_is_remembered() -> None:
    long = "x" * (MAX_READ_CHARACTERS + 10) + " The answer is Paris."
    assert final(long) == "Paris"
    assert final(f"<answer>Rome</answer>{long}") == "Paris"
