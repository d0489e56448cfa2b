"""One synthetic answer: what the judge is asked, and what is made of what it says."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.judges.scripted import saying, shown

from gradewire_server.domain.judge import Generate, Generated
from gradewire_server.domain.result import Failure, Status
from gradewire_server.metrics.checks import is_blank
from gradewire_server.metrics.judged.neutralise import cut_to_words
from gradewire_server.metrics.judged.prompts import PACKAGE_PROMPTS, read_prompt
from gradewire_server.metrics.text.word_split import split_words
from gradewire_server.scoring.synthetic.check import Flaw, holds_answer
from gradewire_server.scoring.synthetic.sentence import Writing, Written, write_sentence

PROMPT = read_prompt(
    b"""
format = 1
name = "mine"
version = 3
metric = "synthetic"
[variants.sentence]
system = "Write one sentence about it."
item = "Q: {question}\\nA: {answer}"
steps = [{name = "sentence", opening = "S:", max_tokens = 12}]
[variants.again]
system = "Write one sentence about it."
item = "Q: {question}\\nA: {answer}\\nBefore, {problem}."
steps = [{name = "sentence", opening = "S:", max_tokens = 12}]
[[demonstrations.short]]
question = "Who swims?"
answer = "a duck"
sentence = "A duck swims."
"""
)
WRITING = Writing("judge@" + "0" * 64, PROMPT)
CAPITAL = "What is the capital of France?"


def write(
    says: Callable[[Generate], Generated | Failure],
    question: str = CAPITAL,
    reference: str = "Paris",
    *,
    writing: Writing = WRITING,
) -> tuple[Written | Failure, list[Generate]]:
    """Runs the program by hand; also gives what the judge was asked."""
    program = write_sentence(question, reference, writing)
    asked: list[Generate] = []
    answers: Any = None
    try:
        while True:
            (need,) = program.send(answers)
            assert isinstance(need, Generate)
            asked.append(need)
            answers = (says(need),)
    except StopIteration as stop:
        return stop.value, asked


def test_what_the_judge_sees() -> None:
    _, (first, again) = write(saying("Paris."), "What is\nit?", "the\tcapital")
    before = "system: Write one sentence about it.\nuser: Q: Who swims?\nA: a duck\nassistant: S: A duck swims.\n"
    item = "user: Q: What is it?\nA: the capital\n"
    assert shown(first.prompt) == before + item + "assistant: S:"
    assert shown(again.prompt) == before + item + f"Before, {Flaw.MISSING_WORDS}.\nassistant: S: the capital"
    assert first.prompt.fixed == again.prompt.fixed, "what is before the item is computed once"
    assert (first.model, first.max_tokens, first.stop) == (WRITING.model, 12, ("\n",))


def test_a_judge_that_begins_its_turn_anew_is_understood() -> None:
    assert write(saying("S: Paris is it."))[0] == Written("Paris is it.", tries=1)


def test_a_good_sentence_is_taken_at_once() -> None:
    written, asked = write(saying("The capital of France is Paris. It has many parks."))
    assert written == Written("The capital of France is Paris.", tries=1)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("says", "flaw"),
    [
        ("", Flaw.EMPTY),
        ("The capital is Lyon.", Flaw.MISSING_WORDS),
        ("Paris.", Flaw.ONLY_ANSWER),
        ("What is the capital of France?", Flaw.QUESTION),
        ("The capital of France, which many people know and love, is " + "very " * 20 + "much Paris.", Flaw.UNFINISHED),
        ("The capital of France is Paris<|im_end|>.", Flaw.MARKUP),
        ("assistant: The capital of France is Paris.", Flaw.MARKUP),
        ("The capital of France: A: Paris.", Flaw.MARKUP),
    ],
)
def test_the_second_prompt_says_what_was_wrong(says: str, flaw: Flaw) -> None:
    written, asked = write(saying(says, "is the capital of France."))
    assert written == Written("Paris is the capital of France.", tries=2)
    assert flaw in shown(asked[1].prompt)


@pytest.mark.parametrize(
    ("reference", "says", "sentence"),
    [
        ("Paris", "is the capital.", "Paris is the capital."),
        ("Paris", "(France) is the capital.", "Paris (France) is the capital."),
        ("Paris", "'s the capital.", "Paris's the capital."),
        ("Paris", ", of course, is the capital.", "Paris, of course, is the capital."),
        ("Paris", "Paris is the capital.", "Paris is the capital."),
        ("Paris.", "is the capital.", "Paris is the capital."),
        ("U.S.", "is the capital.", "U.S. is the capital."),
        ("...", "is the sign.", "... is the sign."),
        ("PARIS", "Paris is the capital.", "Paris is the capital."),
        ("Pa\u00adris\u200f", "is\x00the\u200b capital.", "Paris is the capital."),
        ("Paris", "S: Paris is the capital.", "Paris is the capital."),
        ("Paris", "s: is the capital.", "Paris is the capital."),
        ("$5", "3 is no price but this.", "$5 3 is no price but this."),
        ("\u6771\u4eac", "\u306f\u9996\u90fd\u3067\u3059\u3002", "\u6771\u4eac\u306f\u9996\u90fd\u3067\u3059\u3002"),
        ("\u0644\u0646\u062f\u0646", "\u0647\u064a", "\u0644\u0646\u062f\u0646 \u0647\u064a"),
    ],
)
def test_the_second_sentence_goes_on_behind_the_answer(reference: str, says: str, sentence: str) -> None:
    question = "Which capital, sign or price? \u9996\u90fd \u0647\u064a"
    written, _ = write(saying("It is Lyon.", says), question, reference)
    assert written == Written(sentence, tries=2)


@pytest.mark.parametrize(
    ("says", "flaw"),
    [
        (".", Flaw.ONLY_ANSWER),
        ("", Flaw.ONLY_ANSWER),
        ("or what?", Flaw.QUESTION),
        (", the Paris.", Flaw.ONLY_ANSWER),
        (". It is the capital of France.", Flaw.ONLY_ANSWER),
        ("is a place that many people like.", Flaw.UNRELATED),
        ("(before) it did not contain the words of the answer.", Flaw.INSTRUCTIONS),
        ("is a capital, a duck swims.", Flaw.EXAMPLE),
        ("swims like a duck in the capital.", Flaw.EXAMPLE),
    ],
)
def test_after_two_bad_sentences_the_reference_stands_for_itself(says: str, flaw: Flaw) -> None:
    written, asked = write(saying("The capital is Lyon.", says))
    assert written == Written("Paris", tries=2, fault=f"of the judge's last sentence, {flaw}")
    assert len(asked) == 2


def test_what_a_small_judge_said_of_its_prompt_is_no_sentence() -> None:
    """Verbatim what a judge of 135 million parameters wrote behind the answer it was given to begin with."""
    flaw = Flaw.MISSING_WORDS
    says = f"(the last sentence) was not good: {flaw}."
    writing = replace(WRITING, prompt=PACKAGE_PROMPTS.find("synthetic", ""))
    written, _ = write(saying("Beijing is it.", says), "What is the capital of China?", "\u5317\u4eac", writing=writing)
    assert written == Written("\u5317\u4eac", tries=2, fault=f"of the judge's last sentence, {Flaw.INSTRUCTIONS}")


def test_the_first_sentence_may_not_repeat_the_prompt_either_but_need_not_name_the_question() -> None:
    written, (_, again) = write(saying("To write one sentence about it: Paris is the capital.", "is the capital."))
    assert written == Written("Paris is the capital.", tries=2)
    assert Flaw.INSTRUCTIONS in shown(again.prompt)
    assert write(saying("It is Paris."))[0] == Written("It is Paris.", tries=1)


def test_of_the_second_try_one_sentence_is_kept() -> None:
    written, _ = write(saying("It is Lyon.", "is the capital of France. Before, it was empty. Who swims?"))
    assert written == Written("Paris is the capital of France.", tries=2)


def test_a_judge_that_is_away_writes_nothing() -> None:
    away = Failure(Status.UNAVAILABLE, "restarting", 2.0)
    assert write(lambda _: away)[0] is away
    bad = Generated("Paris.", complete=True, prompt_tokens=1, generated_tokens=1)
    told = iter((bad, away))
    assert write(lambda _: next(told))[0] is away, "nor after a bad first try"


def test_a_prompt_without_a_second_try_has_none() -> None:
    once = replace(PROMPT, variants={"sentence": PROMPT.variants["sentence"]})
    program = write_sentence(CAPITAL, "Paris", replace(WRITING, prompt=once))
    next(program)
    with pytest.raises(StopIteration) as stop:
        program.send((Generated("Lyon.", complete=True, prompt_tokens=1, generated_tokens=1),))
    assert stop.value.value.tries == 1


@pytest.mark.parametrize(
    ("reference", "faulty"),
    [
        ("It was " + "very " * 20 + "late", False),
        ("x" * 1_000_000, False),
        ("Paris <|im_end|>", True),
        ("System: Paris", True),
        ("[INST] Paris", True),
        ("A: Paris", True),
    ],
)
def test_some_references_no_judge_is_asked_about(reference: str, faulty: bool) -> None:  # noqa: FBT001 - a column
    written, asked = write(saying("never"), reference=reference)
    assert isinstance(written, Written)
    assert (written.text, written.tries, bool(written.fault)) == (reference, 0, faulty)
    assert not asked


def test_the_prompt_of_the_package_has_two_tries_with_the_same_beginning() -> None:
    prompt = PACKAGE_PROMPTS.find("synthetic", "")
    assert prompt.title == "synthetic/1"
    assert {step.name for variant in prompt.variants.values() for step in variant.steps} == {"sentence"}
    program = write_sentence(CAPITAL, "Paris", Writing("judge", prompt))
    (first,) = next(program)
    (again,) = program.send((Generated("Lyon.", complete=True, prompt_tokens=1, generated_tokens=1),))
    assert isinstance(first, Generate)
    assert isinstance(again, Generate)
    assert first.prompt.fixed == again.prompt.fixed
    assert first.prompt != again.prompt
    assert Flaw.MISSING_WORDS in shown(again.prompt)


texts = st.text(max_size=40).filter(lambda text: not is_blank(text))
sayings = st.text(max_size=60) | st.builds("It is {}.".format, texts)


@given(texts, texts, st.lists(sayings, min_size=1, max_size=2))
def test_whatever_is_said_a_sentence_holds_the_answer(question: str, reference: str, said: list[str]) -> None:
    written, asked = write(saying(*said), question, reference)
    assert isinstance(written, Written)
    assert written.tries == len(asked) <= 2
    if written.tries and not written.fault:
        assert holds_answer(written.text, cut_to_words(reference, 100)[0])
        assert split_words(written.text) != split_words(reference)
    else:
        assert written.text == reference
