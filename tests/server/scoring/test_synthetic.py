"""What a sentence has to be to stand for a reference."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.judges.scripted import saying, shown

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Generate, Generated
from gradewire_server.metrics.common import is_blank
from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS
from gradewire_server.metrics.prompts.neutralise import cut_to_words
from gradewire_server.metrics.prompts.parsing import read_prompt
from gradewire_server.metrics.text.words import split_words
from gradewire_server.scoring.synthetic import (
    MAX_CHARACTERS,
    Flaw,
    ShownTexts,
    SyntheticAnswer,
    WritingSettings,
    find_echo,
    find_flaw,
    first_sentence,
    holds_answer,
    is_about,
    stands_for_itself,
    write_sentence,
)

CAPITAL = "What is the capital of France?"


@pytest.mark.parametrize(
    ("sentence", "question", "reference", "flaw"),
    [
        ("The capital of France is Paris.", CAPITAL, "Paris", None),
        ("The capital of France is Paris.", "capital of france", "paris", None),
        ("Paris is it.", CAPITAL, "PARIS", None),
        ("", CAPITAL, "Paris", Flaw.EMPTY),
        ("...", CAPITAL, "Paris", Flaw.MISSING_WORDS),
        ("The capital is Lyon.", CAPITAL, "Paris", Flaw.MISSING_WORDS),
        ("Parisians live in the capital.", CAPITAL, "Paris", Flaw.MISSING_WORDS),
        ("Paris.", CAPITAL, "Paris", Flaw.ONLY_ANSWER),
        ('"Paris"', CAPITAL, "Paris", Flaw.ONLY_ANSWER),
        ("Paris, Paris.", CAPITAL, "Paris", Flaw.ONLY_ANSWER),
        ("The Paris.", CAPITAL, "Paris", Flaw.ONLY_ANSWER),
        ("Lee Oswald.", "Who did it?", "Oswald, Lee", Flaw.ONLY_ANSWER),
        ("What is the capital of France?", CAPITAL, "Paris", Flaw.QUESTION),
        ("Is the capital of France Paris?", CAPITAL, "Paris", Flaw.QUESTION),
        ("What is the capital of France: Paris.", CAPITAL, "Paris", Flaw.QUESTION),
        ("Paris, what is the capital of France.", CAPITAL, "Paris", Flaw.QUESTION),
        ("What is the capital of France is Paris.", "what is the capital of france", "Paris", Flaw.QUESTION),
        ("Who: Paris.", "Who?", "Paris", Flaw.QUESTION),
        ("Capital of France.", "capital of france", "France", Flaw.QUESTION),
        # A question that is a phrase belongs into a good sentence.
        ("The color of the car is red.", "Color of the car?", "red", None),
        ("Mustangs are a type of horse.", "Mustangs are a type of?", "horse", None),
        # Binary questions.
        ("Yes, the sky is blue.", "is the sky blue", "yes", None),
        ("Is the sky blue yes.", "is the sky blue", "yes", Flaw.QUESTION),
        # An answer with a question mark of its own.
        ("The play is Who's Afraid of Virginia Woolf?", "Which play?", "Who's Afraid of Virginia Woolf?", None),
        # Lemmas, articles, order, compounds.
        ("There are two kittens.", "What is there?", "kitten", None),
        ("Some Beatles wrote it.", "Who wrote it?", "The Beatles", None),
        ("The letter is an A.", "Which letter?", "A", None),
        ("Lee Harvey Oswald did it.", "Who did it?", "Oswald, Lee", None),
        ("He is a well known man.", "What is he?", "well-known", None),
        ("He is at the party.", "Where is he?", "art", Flaw.MISSING_WORDS),
        # Scripts without blanks: the answer as it stands, not its letters.
        (
            "\u65e5\u672c\u306e\u9996\u90fd\u306f\u6771\u4eac\u3067\u3059\u3002",
            "\u9996\u90fd\u306f\uff1f",
            "\u6771\u4eac",
            None,
        ),
        (
            "\u4eac\u90fd\u306f\u6771\u306b\u3042\u308b\u3002",
            "\u9996\u90fd\u306f\uff1f",
            "\u6771\u4eac",
            Flaw.MISSING_WORDS,
        ),
        # No word character in the answer.
        ("The sign for adding is +.", "Which sign?", "+", None),
        ("The sign for adding is minus.", "Which sign?", "+", Flaw.MISSING_WORDS),
        ("word " * 60 + "Paris.", CAPITAL, "Paris", Flaw.UNFINISHED),
    ],
)
def test_flaws(sentence: str, question: str, reference: str, flaw: Flaw | None) -> None:
    assert find_flaw(sentence, question=question, reference=reference, finished=True) is flaw


def test_a_sentence_that_was_cut_is_none() -> None:
    sentence = "The capital of France is Paris, which"
    assert find_flaw(sentence, question=CAPITAL, reference="Paris", finished=False) is Flaw.UNFINISHED


def test_every_flaw_can_be_told_to_a_judge() -> None:
    assert all(flaw.value.startswith("it ") for flaw in Flaw)


@pytest.mark.parametrize(
    ("reference", "stands"),
    [
        ("Paris", False),
        (" ".join(["word"] * 16), False),
        (" ".join(["word"] * 17), True),
        ("\u6771" * 200, False),
        ("\u6771" * 201, True),
        ("x" * 1_000_000, True),
        ("- " * 90 + "word", False),
    ],
)
def test_long_references_stand_for_themselves(reference: str, stands: bool) -> None:  # noqa: FBT001 - a table's column
    assert stands_for_itself(reference) is stands


texts = st.text(max_size=30).filter(lambda text: not is_blank(text))
words = st.lists(
    st.sampled_from(
        ["the", "Paris", "cat", "cats", "\u6771\u4eac", "caf\u00e9", "8", "is", "what", "?", "+", "no-one"]
    ),
    min_size=1,
    max_size=6,
).map(" ".join)


@given(texts | words, texts | words, texts | words)
def test_what_passes_holds_the_answer_and_more(sentence: str, question: str, reference: str) -> None:
    flaw = find_flaw(sentence, question=question, reference=reference, finished=True)
    if flaw is None:
        assert holds_answer(sentence, reference)
        assert sentence.split() != reference.split()
        assert sentence.split() != question.split()


@given(words)
def test_a_text_holds_itself(text: str) -> None:
    assert holds_answer(f"So it is {text} today.", text)


@given(texts | words, st.integers(1, 3))
def test_the_question_never_passes(question: str, marks: int) -> None:
    # Not even where the answer is a part of it, nor with another mark.
    for copy in (question, question + "?" * marks, question + "." * marks):
        assert find_flaw(copy, question=question, reference="a cat", finished=True) is not None


PROMPT: Final = PACKAGE_PROMPTS.find("synthetic", "")
CAPITAL_ECHO: Final = "What is the capital of China?"


@pytest.mark.parametrize(
    ("sentence", "question", "reference", "flaw"),
    [
        ("The capital of China is Beijing.", CAPITAL_ECHO, "Beijing", None),
        # The criticism, the instructions, the item's own words.
        ("Beijing: it did not contain the words of the answer.", CAPITAL_ECHO, "Beijing", Flaw.INSTRUCTIONS),
        ("Beijing. THE LAST SENTENCE, was not good", CAPITAL_ECHO, "Beijing", Flaw.INSTRUCTIONS),
        ("Begin with the answer Beijing.", CAPITAL_ECHO, "Beijing", Flaw.INSTRUCTIONS),
        ("Beijing, as somebody would say it, is the capital.", CAPITAL_ECHO, "Beijing", Flaw.INSTRUCTIONS),
        # The same words where question or answer brought them.
        ("The capital is 'Begin with the answer'.", CAPITAL_ECHO, "Begin with the answer", None),
        ("It did not contain the words.", "What did the box not contain?", "the words", None),
        # Function words in the order of the instructions.
        ("Leon is a town that is not in France.", "What is Leon?", "town", None),
        # Demonstrations, whole or with another answer.
        ("Beijing: the boy is holding a kite.", CAPITAL_ECHO, "Beijing", Flaw.EXAMPLE),
        ("Beijing painted The Night Watch.", CAPITAL_ECHO, "Beijing", Flaw.EXAMPLE),
        ("Penguins live in Beijing.", CAPITAL_ECHO, "Beijing", Flaw.EXAMPLE),
        ("Penguins live in Antarctica.", "Where do penguins live?", "Antarctica", None),
        ("The boy is holding a bat.", "What does the boy hold?", "bat", None),
        ("Lautrec watched the night sky.", "Who watched the sky?", "Lautrec", None),
        # Another script: nothing there is the prompt's.
        ("\u5317\u4eac\u662f\u9996\u90fd\u3002", "\u9996\u90fd\uff1f", "\u5317\u4eac", None),
    ],
)
def test_echoes(sentence: str, question: str, reference: str, flaw: Flaw | None) -> None:
    found = find_echo(sentence, ShownTexts(PROMPT, "again", Flaw.MISSING_WORDS), question=question, reference=reference)
    assert found is flaw


def test_only_what_was_shown_is_repeated() -> None:
    said = "It only repeated the answer, Beijing."
    for problem, flaw in ((Flaw.ONLY_ANSWER, Flaw.INSTRUCTIONS), (Flaw.EMPTY, None)):
        assert find_echo(said, ShownTexts(PROMPT, "again", problem), question=CAPITAL_ECHO, reference="Beijing") is flaw


@pytest.mark.parametrize(
    ("sentence", "question", "reference", "about"),
    [
        ("Paris is the capital.", "What is the capital of France?", "Paris", True),
        ("Paris is very nice.", "What is the capital of France?", "Paris", False),
        ("Kim is swimming.", "Who swims?", "Kim", False),
        ("Kim is swimming.", "Who can swim?", "Kim", True),
        ("Kim has an ox.", "What has an oxen?", "Kim", False),
        ("Moscow was it.", "What was it?", "Moscow", True),
        ("Yes, it is.", "Is it?", "yes", True),
        # What the answer says already is no relation, and where all is in it none can be asked for.
        ("The red car it is.", "Is the car red or blue?", "the red car", False),
        ("The red car it is.", "The car?", "the red car", True),
        ("\u5317\u4eac\u662f\u9996\u90fd\u3002", "\u9996\u90fd\uff1f", "\u5317\u4eac", True),
        ("\u5317\u4eac\u5f88\u5927\u3002", "\u9996\u90fd\uff1f", "\u5317\u4eac", False),
        ("It is +.", "?!", "+", True),
    ],
)
def test_relations(sentence: str, question: str, reference: str, about: bool) -> None:  # noqa: FBT001 - a column
    assert is_about(sentence, question, reference) is about


texts_echo = st.text(min_size=1).filter(str.strip)


@given(texts_echo, texts_echo)
def test_what_question_and_answer_say_is_never_an_echo(question: str, reference: str) -> None:
    for said in (question, reference):
        assert find_echo(said, ShownTexts(PROMPT, "again", ""), question=question, reference=reference) is None


@given(texts_echo, texts_echo, texts_echo)
@example(sentence="0", question="0\U000e00000", reference="0")
def test_a_sentence_with_the_whole_question_in_it_is_about_it(sentence: str, question: str, reference: str) -> None:
    assert is_about(f"{sentence} {question} {sentence}", question, reference)


@pytest.mark.parametrize(
    ("text", "sentence", "ended"),
    [
        ("Paris is the capital. It has parks.", "Paris is the capital.", True),
        ("Paris is the capital", "Paris is the capital", False),
        ("\n  Paris is the capital.\nIt has parks.", "Paris is the capital.", True),
        ('"Paris is the capital."', "Paris is the capital.", True),
        ("\u201cParis is the capital.\u201d", "Paris is the capital.", True),
        ('"Hamlet" is by the author of "Othello"', '"Hamlet" is by the author of "Othello"', False),
        ('He said "yes." Then he left.', 'He said "yes."', True),
        ("J. K. Rowling wrote it. She was born in 1965.", "J. K. Rowling wrote it.", True),
        ("Dr. Smith lives on St. John St. The house is old.", "Dr. Smith lives on St. John St.", True),
        ("Scurvy comes from a lack of vitamin C. It can be cured.", "Scurvy comes from a lack of vitamin C.", True),
        ("The U.S. was first. France came later.", "The U.S. was first.", True),
        ("It is 3.5 km long. That is far.", "It is 3.5 km long.", True),
        ("It is No. 5 of them. The end.", "It is No. 5 of them.", True),
        ("The answer is no. Dogs bark.", "The answer is no.", True),
        ("Albee wrote Who's Afraid? in 1962. He died.", "Albee wrote Who's Afraid? in 1962.", True),
        ("Wait... What? No.", "Wait...", True),
        (
            "\u6771\u4eac\u3067\u3059\u3002\u5927\u962a\u3067\u306f\u306a\u3044\u3002",
            "\u6771\u4eac\u3067\u3059\u3002",
            True,
        ),
        (
            "\u092f\u0939 \u0926\u093f\u0932\u094d\u0932\u0940 \u0939\u0948\u0964 \u0914\u0930",
            "\u092f\u0939 \u0926\u093f\u0932\u094d\u0932\u0940 \u0939\u0948\u0964",
            True,
        ),
        ("", "", False),
        (" \n\t", "", False),
        ('"', '"', False),
    ],
)
def test_where_the_first_sentence_ends(text: str, sentence: str, ended: bool) -> None:  # noqa: FBT001 - a table's column
    assert first_sentence(text) == (sentence, ended)


def test_marks_of_the_answer_end_no_sentence() -> None:
    text = "It was Yahoo! Inc. that bought it."
    assert first_sentence(text) == ("It was Yahoo!", True)
    assert first_sentence(text, keep="Yahoo! Inc.") == (text, True)


@pytest.mark.parametrize("piece", [".", ".'", "A. ", "a.b ", "\u3002", "?!", "...x", '"', "No. 5 "])
def test_long_texts_of_marks_take_no_time(piece: str) -> None:
    # Were it quadratic in what it is given, this would take minutes.
    sentence, _ = first_sentence(piece * 1_000_000)
    assert len(sentence) <= MAX_CHARACTERS


@given(st.text(max_size=60), st.text(max_size=8))
def test_a_sentence_is_a_piece_of_one_line(text: str, keep: str) -> None:
    sentence, ended = first_sentence(text, keep=keep)
    assert sentence in text
    assert "\n" not in sentence
    assert sentence == sentence.strip()
    assert not (ended and not sentence)
    assert first_sentence(sentence, keep=keep)[0] in sentence


PROMPT_SENTENCE = read_prompt(
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
WRITING = WritingSettings("judge@" + "0" * 64, PROMPT_SENTENCE)
CAPITAL_SENTENCE = "What is the capital of France?"


def write(
    says: Callable[[Generate], Generated | Failure],
    question: str = CAPITAL_SENTENCE,
    reference: str = "Paris",
    *,
    writing: WritingSettings = WRITING,
) -> tuple[SyntheticAnswer | Failure, list[Generate]]:
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
    assert write(saying("S: Paris is it."))[0] == SyntheticAnswer("Paris is it.", tries=1)


def test_a_good_sentence_is_taken_at_once() -> None:
    written, asked = write(saying("The capital of France is Paris. It has many parks."))
    assert written == SyntheticAnswer("The capital of France is Paris.", tries=1)
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
    assert written == SyntheticAnswer("Paris is the capital of France.", tries=2)
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
    assert written == SyntheticAnswer(sentence, tries=2)


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
    assert written == SyntheticAnswer("Paris", tries=2, fault=f"the judge's last sentence is invalid ({flaw})")
    assert len(asked) == 2


def test_what_a_small_judge_said_of_its_prompt_is_no_sentence() -> None:
    """Verbatim what a judge of 135 million parameters wrote behind the answer it was given to begin with."""
    flaw = Flaw.MISSING_WORDS
    says = f"(the last sentence) was not good: {flaw}."
    writing = replace(WRITING, prompt=PACKAGE_PROMPTS.find("synthetic", ""))
    written, _ = write(saying("Beijing is it.", says), "What is the capital of China?", "\u5317\u4eac", writing=writing)
    assert written == SyntheticAnswer(
        "\u5317\u4eac", tries=2, fault=f"the judge's last sentence is invalid ({Flaw.INSTRUCTIONS})"
    )


def test_the_first_sentence_may_not_repeat_the_prompt_either_but_need_not_name_the_question() -> None:
    written, (_, again) = write(saying("To write one sentence about it: Paris is the capital.", "is the capital."))
    assert written == SyntheticAnswer("Paris is the capital.", tries=2)
    assert Flaw.INSTRUCTIONS in shown(again.prompt)
    assert write(saying("It is Paris."))[0] == SyntheticAnswer("It is Paris.", tries=1)


def test_of_the_second_try_one_sentence_is_kept() -> None:
    written, _ = write(saying("It is Lyon.", "is the capital of France. Before, it was empty. Who swims?"))
    assert written == SyntheticAnswer("Paris is the capital of France.", tries=2)


def test_a_judge_that_is_away_writes_nothing() -> None:
    away = Failure(Status.UNAVAILABLE, "restarting", 2.0)
    assert write(lambda _: away)[0] is away
    bad = Generated("Paris.", complete=True, prompt_tokens=1, generated_tokens=1)
    told = iter((bad, away))
    assert write(lambda _: next(told))[0] is away, "nor after a bad first try"


def test_a_prompt_without_a_second_try_has_none() -> None:
    once = replace(PROMPT_SENTENCE, variants={"sentence": PROMPT_SENTENCE.variants["sentence"]})
    program = write_sentence(CAPITAL_SENTENCE, "Paris", replace(WRITING, prompt=once))
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
    assert isinstance(written, SyntheticAnswer)
    assert (written.text, written.tries, bool(written.fault)) == (reference, 0, faulty)
    assert not asked


def test_the_prompt_of_the_package_has_two_tries_with_the_same_beginning() -> None:
    prompt = PACKAGE_PROMPTS.find("synthetic", "")
    assert prompt.title == "synthetic/1"
    assert {step.name for variant in prompt.variants.values() for step in variant.steps} == {"sentence"}
    program = write_sentence(CAPITAL_SENTENCE, "Paris", WritingSettings("judge", prompt))
    (first,) = next(program)
    (again,) = program.send((Generated("Lyon.", complete=True, prompt_tokens=1, generated_tokens=1),))
    assert isinstance(first, Generate)
    assert isinstance(again, Generate)
    assert first.prompt.fixed == again.prompt.fixed
    assert first.prompt != again.prompt
    assert Flaw.MISSING_WORDS in shown(again.prompt)


texts_sentence = st.text(max_size=40).filter(lambda text: not is_blank(text))
sayings = st.text(max_size=60) | st.builds("It is {}.".format, texts_sentence)


@given(texts_sentence, texts_sentence, st.lists(sayings, min_size=1, max_size=2))
def test_whatever_is_said_a_sentence_holds_the_answer(question: str, reference: str, said: list[str]) -> None:
    written, asked = write(saying(*said), question, reference)
    assert isinstance(written, SyntheticAnswer)
    assert written.tries == len(asked) <= 2
    if written.tries and not written.fault:
        assert holds_answer(written.text, cut_to_words(reference, 100)[0])
        assert split_words(written.text) != split_words(reference)
    else:
        assert written.text == reference
