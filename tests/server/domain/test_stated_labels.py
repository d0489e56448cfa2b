"""Texts in which a judge states a label, and texts in which a label stands without being stated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.judges.remote.remote_judges import choose, opened
from tests.support.examples import example_count
from tests.support.fakes.odd_openai import OddServer, completion

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice
from gradewire_server.judges.remote.labels import Labels

VERDICT = ("incorrect", "correct")
THREE = ("incorrect", "incomplete", "correct")
RATING = ("1", "2", "3")
GRADE = ("0", "1", "2", "3", "4", "5")
PAIR = ("A", "B", "tie")
SIMILARITY = ("different", "related", "similar", "equivalent")
YES_NO = ("no", "yes")
OPENINGS = {
    VERDICT: "The student's answer is",
    THREE: "The student's answer is",
    RATING: "Rating =",
    GRADE: "Grade:",
    PAIR: "The better answer is",
    SIMILARITY: "The two answers are",
    YES_NO: "",
}


def read(text: str, options: tuple[str, ...], *, whole: bool = True) -> str | None:
    """The label that a text states; None if the result is UNPARSABLE with a reason."""
    found = Labels(options, OPENINGS[options]).read_text(text, whole=whole)
    if isinstance(found, Failure):
        assert found.status is Status.UNPARSABLE
        assert found.message.startswith("the judge's server answered with ")
        return None
    assert (found.mass, sorted(set(found.probabilities))) == (None, [0.0, 1.0])
    assert sum(found.probabilities) == 1
    return options[found.probabilities.index(1.0)]


VERDICT_TEXTS = [
    ("Answer: correct", "correct"),
    ("It's correct.", "correct"),
    ("That's incorrect.", "incorrect"),
    ("I'd say incorrect.", "incorrect"),
    ("Correct ✅", "correct"),
    ("[correct]", "correct"),
    ("[correct/incorrect]", None),
    ("incorrect if strict; correct", None),
    ("Incorrect if strict. Correct.", None),
    ("Incorrect if strict. Final verdict: correct.", "correct"),
    ("Correct. This is only true if the year is ignored.", None),
    ("Correct.\n\nNote: this holds only if the year is ignored.", None),
    ("Correct\n(if the year is ignored)", None),
    ("The student's answer, Paris, is correct by the key, incorrect by the facts.", None),
    ("Verdict: The student's answer is incorrect", "incorrect"),
    ("incorrect; the key says Paris", "incorrect"),
    ("Student answer: correct", None),
    ("Correct? No, incorrect.", "incorrect"),
    ("correct only if the year is ignored", None),
    ("not correct", None),
    ("Not correct.", None),
    ("I would not call this incorrect", None),
    ("I would not call this incorrect.", None),
    ("I would call this incorrect.", "incorrect"),
    ("Is the student's answer correct or incorrect? The student's answer is incorrect.", "incorrect"),
    ("Options: correct, incorrect. Verdict: correct.", "correct"),
    ("Labels: incorrect / correct\nLabel: incorrect", "incorrect"),
    ("- correct\n- incorrect\n\nVerdict: correct", "correct"),
    ("- correct\n- incorrect", None),
    ("correct or incorrect", None),
    ("correct/incorrect", None),
    ("At first it looks correct. Final verdict: incorrect.", "incorrect"),
    ("The answer is correct. Wait, the year differs. So the answer is incorrect.", "incorrect"),
    ("Correct. Incorrect.", None),
    ("The verdict: correct. Or rather: incorrect.", "incorrect"),
    ("\\boxed{correct}", "correct"),
    ("So the verdict is \\boxed{\\text{incorrect}}.", "incorrect"),
    ('{"verdict": "correct", "score": 1}', "correct"),
    ('```json\n{"verdict": "incorrect", "reason": "not correct"}\n```', "incorrect"),
    ('{"verdict": "correct"} The answer names the city.', "correct"),
    ('{"verdict": "correct"} Wait, it is incorrect.', None),
    ("{'verdict': 'incorrect'}", "incorrect"),
    ('{"verdict": "correct", "verdict": "incorrect"}', None),
    ('{"verdict": "not correct"}', None),
    ('{"correct": true}', "correct"),
    ('{"is_correct": false, "why": "x"}', "incorrect"),
    ('{"verdict": "correct" or "incorrect"}', None),
    ('Here is the JSON:\n```json\n{"verdict": "correct", "score": 5}\n```\nLet me know.', "correct"),
    ('{"verdict": "correct", "reason": "the ans', "correct"),
    ('{"reason": "the label is correct"}', None),
    ('{"answer": {"verdict": "correct"}}', "correct"),
    ("", None),
    ("   ", None),
    ("I'm sorry, but I cannot grade this.", None),
    ("<think>It is correct.</think>", None),
    ("<think>Correct? no.</think>\nincorrect", "incorrect"),
    ("<think>correct", None),
    ("Incorrect. The correct answer is Paris.", "incorrect"),
    ("Correct. It would be incorrect if it said 1912.", "correct"),
    ("Incorrect, because the key says Paris and the answer does not.", "incorrect"),
    ("Correct, but only partly.", None),
    ("Correct. Only if the year is ignored.", None),
    ("If the year is ignored, correct.", None),
    ("Assuming the year is ignored, the answer is correct.", None),
    ("The answer is correct if the year is ignored.", None),
    ("The answer is incorrect. It is not correct.", "incorrect"),
    ("The answer is correct. It is not correct.", None),
    ("Since the answer does not name Paris, the answer is incorrect.", "incorrect"),
    ("Incorrect? No, correct.", None),
    ("Yes, correct.", "correct"),
    ("Yes, incorrect.", None),
    ("Verdict:\ncorrect", "correct"),
    ("## Verdict\n**Incorrect**", "incorrect"),
    ("The student wrote:\ncorrect", None),
    ("> correct\nis what the student wrote", None),
    ('The student says "the answer is correct".', None),
    ("~~correct~~ incorrect", "incorrect"),
    ("The student's answer is partially correct.", None),
    ("The student's answer is clearly incorrect.", "incorrect"),
    ("It is correct.", "correct"),
    ("This is incorrect.", "incorrect"),
    ("probably correct", None),
    ("I think the answer is correct", None),
    ("I am not sure whether it is correct.", None),
    ("<verdict>correct</verdict>", "correct"),
    ("Reason: the key names Paris.\n<verdict>incorrect</verdict>", "incorrect"),
    ("Overall, the response is correct.", "correct"),
    ("The statement 'the answer is incorrect' would be wrong.", None),
    ("It is false that the answer is correct.", None),
    ("The answer cannot be called correct.", None),
    ("The answer isn't correct.", None),
    ("Far from correct.", None),
    ("Anything but correct.", None),
    ("Correct: Paris", None),
    ("correct-ish", None),
    ("incorrectly spelled", None),
    ("Hardly correct.", None),
    ("correct?", None),
    ("Correct!", "correct"),
    ("**Correct**", "correct"),
]
RATING_TEXTS = [
    ("Rating (1-3): 2", "2"),
    ("The rating is 2 because it misses the year.", "2"),
    ("Rating: 3/5", None),
    ("$\\boxed{3}$", "3"),
    ("The rating is $\\boxed{2}$.", "2"),
    ("**Rating: 3**", "3"),
    ("Rating = 2", "2"),
    ("Rating: 2/3", "2"),
    ("2 out of 3", "2"),
    ("2/3", "2"),
    ("[[3]]", "3"),
    ("Rating: [[3]]", "3"),
    ("Rating: 2/4", None),
    ("2 of 4", None),
    ("3.0", "3"),
    ("2.5", None),
    ("-1", None),
    ('{"rating": 2, "reason": "3 things"}', "2"),
    ('{"score": 3}', "3"),
    ('{"score": "3/3"}', "3"),
    ('{"score": 4}', None),
    ("1 or 2", None),
    ("rating:2 because", "2"),
    ("3 if correct, 2 if incomplete", None),
    ("1. It names Paris.\n2. It omits the year.\nRating: 2", "2"),
    ("1. It names Paris.\n2. It omits.", None),
    ("2. The answer omits the year.", "2"),
    ("On a scale of 1 to 3, I rate it 2.", None),
    ("I would give it a score of 2.", "2"),
    ("Score: 3 (correct)", "3"),
    ("The answer names 2 of 3 places. Rating: 2", "2"),
    ("Rating: 2. It names 3 places.", "2"),
    ("Rating: 2. Or a score of 3.", None),
]
GRADE_TEXTS = [
    ("The grade: 4/5", "4"),
]
THREE_TEXTS = [
    ("The student's answer is incomplete.", "incomplete"),
]
SIMILARITY_TEXTS = [
    ("The two answers are similar.", "similar"),
    ("The two answers are not different.", None),
]
PAIR_TEXTS = [
    ("A", "A"),
    ("A is better because it names the city.", "A"),
    ("The better answer is B.", "B"),
    ("A is better than B.", "A"),
    ("[[A]]", "A"),
    ("[[A]] if assistant A is better, [[B]] otherwise", None),
    ("A and B are equal", None),
    ("Answer B", "B"),
    ("Neither A nor B", None),
    ("tie", "tie"),
    ("It's a tie.", None),
    ("A better answer would name the year. B", "B"),
    ("B is not better.", None),
    ("A is worse.", None),
    ("My final verdict is: [[B]]", "B"),
    ("Final verdict: tie", "tie"),
]
YES_NO_TEXTS = [
    ("yes", "yes"),
    ("Yes.", "yes"),
    ("No, it is not.", "no"),
    ("Yes, but only in part.", None),
    ("yes or no", None),
    ("Is it? Yes.", "yes"),
]


@pytest.mark.parametrize(("text", "label"), VERDICT_TEXTS)
def test_verdicts(text: str, label: str | None) -> None:
    assert read(text, VERDICT) == label


@pytest.mark.parametrize(
    ("options", "text", "label"),
    [
        *((RATING, *each) for each in RATING_TEXTS),
        *((GRADE, *each) for each in GRADE_TEXTS),
        *((THREE, *each) for each in THREE_TEXTS),
        *((SIMILARITY, *each) for each in SIMILARITY_TEXTS),
        *((PAIR, *each) for each in PAIR_TEXTS),
        *((YES_NO, *each) for each in YES_NO_TEXTS),
    ],
)
def test_other_labels(options: tuple[str, ...], text: str, label: str | None) -> None:
    assert read(text, options) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("correct", "correct"),
        ("incor", "incorrect"),
        ("Correct. The student's answer", "correct"),
        ("Correct because the", "correct"),
        ("**Incorrect**, since the key", "incorrect"),
        ('{"verdict": "correct", "reason": "The ans', "correct"),
        ("correct only if the", None),
        ("Correct? No, in", None),
        ("Correct, b", None),
        ("Correct. In", None),
        ('{"verdict": "cor', None),
        ("<think>It is correct. The", None),
    ],
)
def test_a_text_that_was_cut_states_what_no_word_after_it_can_change(text: str, label: str | None) -> None:
    assert read(text, VERDICT, whole=False) == label


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "an empty text"),
        (" \n", "an empty text"),
        ("<think>It is right", "thoughts only"),
        ("I'm sorry, but I can't grade this.", "a refusal instead of a label"),
        ("As an AI, I cannot say whether it is correct.", "a refusal instead of a label"),
        ("Paris", "none of the labels"),
        ("Correct?", "only in a question"),
        ("correct only if the year is ignored", "a condition"),
        ("The answer is correct. The answer is incorrect.", "several labels"),
        ('{"verdict": "maybe"}', "JSON in which no field has a label"),
    ],
)
def test_the_reason_says_what_is_wrong(text: str, reason: str) -> None:
    found = Labels(VERDICT, OPENINGS[VERDICT]).read_text(text, whole=True)
    assert isinstance(found, Failure)
    assert reason in found.message


PIECES = st.lists(
    st.sampled_from([
        "correct", "incorrect", "3", "2/3", "A", "tie", "not", "Verdict", ":", " ", "\n", ".", "?", "{", "}",
        '"verdict":',
        '"', "[[", "]]", "\\boxed{", "if", "So", "the answer is", "because", ",", "<think>", "</think>", "```json\n",
        "~~", "1. ", "\x00", "\u00df", "\u0130", "I rate it", "out of 3", "no,",
    ]),
    max_size=30,
).map("".join)  # fmt: skip


@settings(max_examples=example_count(300), deadline=None)
@given(PIECES | st.text(max_size=60), st.sampled_from(sorted(OPENINGS)), st.booleans())
def test_any_text_is_a_label_that_stands_in_it_or_unparsable_with_a_reason(
    text: str,
    options: tuple[str, ...],
    whole: bool,  # noqa: FBT001 - drawn
) -> None:
    label = read(text, options, whole=whole)
    if label is not None and whole:
        without = text.casefold().replace("incorrect", "") if label == "correct" else text.casefold()
        assert label.casefold() in without or "true" in without or "false" in without


@settings(max_examples=example_count(100), deadline=None)
@given(
    st.sampled_from(["Reason: the key names Paris.", "It names 2 of 3 places.", "Is it correct or incorrect?", ""]),
    st.sampled_from(
        ["Verdict: {}", "Final verdict: **{}**.", "So the verdict is \\boxed{{{}}}.", '{{"verdict": "{}"}}']
    ),
    st.sampled_from(VERDICT),
)
def test_a_verdict_after_any_reason_is_read(before: str, form: str, label: str) -> None:
    assert read(f"{before}\n{form.format(label)}", VERDICT) == label


@pytest.mark.parametrize("filler", ["{", '{"a":', "[[", "\\boxed{", "<a>", "correct. ", "so so ", "since a, ", "~~"])
def test_a_long_reply_is_read_at_once(filler: str) -> None:
    assert read(filler * ((1 << 20) // len(filler)), RATING) is None


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("Correct? No, incorrect.", None),
        ("correct only if the year is ignored", "a condition"),
        ("I would not call this incorrect", "a negation"),
        ("I cannot judge this.", "a refusal"),
    ],
)
async def test_a_server_without_log_probabilities_is_read_by_its_text(reply: str, words: str | None) -> None:
    async with OddServer(answers=[completion(reply)]) as server, opened(server.url) as judge:
        found = (await judge.choose(choose(options=VERDICT, opening=OPENINGS[VERDICT]))).answer
    if words is None:
        assert isinstance(found, Choice)
        assert found.probabilities == (1.0, 0.0)
        return
    assert isinstance(found, Failure)
    assert found.status is Status.UNPARSABLE
    assert words in found.message
    assert f"The judge wrote {reply!r}" in found.message


@pytest.mark.parametrize("whole", [True, False])
def test_long_thoughts_without_an_end_are_no_verdict(whole: bool) -> None:  # noqa: FBT001 - of the table
    thoughts = "<think>" + "hm " * 20_000 + ".\nThe student's answer is correct."
    assert read(thoughts, VERDICT, whole=whole) is None
    assert read(f"{thoughts}</think>\nThe student's answer is incorrect.", VERDICT) == "incorrect"
