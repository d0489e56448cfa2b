"""Kinds that mention a second value, read back by parsers of the tests' own: only the value that is given counts."""

import json
import re

import pytest
from tests.train.graded.conftest import Many, stated

from gradewire_train.material import GRADED
from gradewire_train.texts.draw import normal

STRUCK = re.compile(r"~~(.+?)~~|<(s|del|strike)>(.+?)</\2>|\[-(.+?)-\]|\\sout\{(.+?)\}")
KINDS = ["of_another", "quoted", "retracted", "contrasted", "wrapped", "undecided"]
# Forms around S, the value that is given, and O, the value that is only mentioned.
FORMS = {
    "of_another": [
        "Elsewhere it is O; here it is S.", "Last time it was O, this time it is S.", "Here S, there O.",
        "The others have O in this place. Ours has S.",
    ],
    "quoted": [
        '"O", said Tom. "No," said the teacher, "it is S."', 'You quote "O". The book itself has "S".',
        'The sign says "O", but the sign is wrong: it is S.',
    ],
    "retracted": [
        "O. No wait, S.", "First I thought it was O, but it is S.", "O - correction: S.",
        "Erst dachte ich O, richtig ist aber S.",
    ],
    "contrasted": [
        "S rather than O.", "O is wrong, S is right.", "Of the two, S and O, take the former.",
        "Of the two, O and S, take the latter.", "Everybody says O; everybody is wrong, for it is S.",
    ],
    "wrapped": [
        "Final answer: S\nDiscarded: O", "Discarded: O\nFinal answer: S", "[x] S\n[ ] O", "[ ] O\n[x] S",
        "previous: O\ncurrent: S", "A) O\nB) S\n\nThe answer is B.", "A) S\nB) O\n\nThe answer is A.",
    ],
}  # fmt: skip
ANSWER_FIELDS = {"answer", "final_answer", "result", "solution", "output", "response", "prediction", "final"}
OPEN = re.compile(
    r"nobody knows|one of them|I still do|Hard to say|cannot say|both possible|did not check|will not choose"
    r"|do not settle|It is either|Only one is right|one is the answer|My pick: open"
)


@pytest.mark.parametrize("kind", FORMS)
def test_the_value_that_is_given_counts_and_not_the_one_that_is_mentioned(kind: str, many: Many) -> None:
    checked = 0
    for row in many(kind):
        for form in FORMS[kind]:
            if found := re.fullmatch(_pattern(form), stated(row)):
                wanted = set(map(normal, row.drawn.references))
                if not row.drawn.right:
                    assert normal(found["said"]) not in wanted, row
                assert not row.drawn.right or normal(found["other"]) not in wanted, row
                checked += normal(found["said"]) in wanted or normal(found["other"]) in wanted
                break
    assert checked > 3


def test_the_value_belongs_to_the_company_of_the_question(many: Many) -> None:
    checked = 0
    for row in many("of_another"):
        asked = [each for each in GRADED["companies"] if each.lower() in row.drawn.question.lower()]
        if not asked:
            continue
        clauses = re.split(r"[;,.] | and that | while | whereas | but | just as |, and ", row.drawn.prediction)
        own = [each for each in clauses if asked[0] in each and re.search(r"\d|[A-Z]\w+ [A-Z]\w+$|by |as a ", each)]
        if len(own) == 1 and (re.search(r"\d", own[0]) is not None) == row.drawn.references[0].isdigit():
            assert (re.search(rf"\b{row.drawn.references[0]}\b", own[0]) is not None) == row.drawn.right, row
            checked += 1
    assert checked > 30


def test_a_claim_that_is_confirmed_is_right_and_one_that_is_rejected_wrong(many: Many) -> None:
    checked = 0
    for row in many("quoted"):
        confirmed = re.search(
            r"is right\.|rightly so|and they are right|Correct\.|claim .* holds|It is a fact", row.drawn.prediction
        )
        rejected = re.search(
            r"is wrong\.|wrongly so|they are mistaken|Incorrect|does not hold|It is a myth", row.drawn.prediction
        )
        if rejected:
            assert not row.drawn.right, row
        elif confirmed and any(normal(each) in normal(row.drawn.prediction) for each in row.drawn.references):
            assert row.drawn.right, row
        checked += bool(confirmed or rejected)
    assert checked > 10


def test_text_that_is_struck_out_does_not_count(many: Many) -> None:
    checked = 0
    for row in many("retracted"):
        if struck := STRUCK.search(row.drawn.prediction):
            gone = " ".join(each for each in struck.groups() if each)
            left = STRUCK.sub(" ", row.drawn.prediction)
            for reference in map(normal, row.drawn.references):
                kept = left if not row.drawn.right else gone
                assert not re.search(rf"\b{re.escape(reference)}\b", normal(kept)), row
            checked += 1
    assert checked > 20


def test_the_field_of_the_answer_decides(many: Many) -> None:
    checked = 0
    for row in many("wrapped"):
        block = re.search(r"\{\s*\".*\}", row.drawn.prediction, re.DOTALL)
        if block is None:
            continue
        fields = json.loads(block[0])
        answers = [value for name, value in fields.items() if name in ANSWER_FIELDS]
        assert len(answers) == 1
        wanted = set(map(normal, row.drawn.references))
        if not row.drawn.right:
            assert normal(answers[0]) not in wanted, row
        else:
            assert not any(normal(value) in wanted for value in fields.values() if value != answers[0]), row
        checked += 1
    assert checked > 20


def test_an_answer_that_stays_open_is_wrong(many: Many) -> None:
    rows = many("undecided")
    found = [row for row in rows if OPEN.search(row.drawn.prediction)]
    assert found
    assert not any(row.drawn.right for row in found)
    decided = [row for row in rows if not row.drawn.right and row not in found]
    assert decided


@pytest.mark.parametrize("kind", KINDS)
def test_some_wrong_answers_contain_the_reference(kind: str, many: Many) -> None:
    wrong = [row for row in many(kind) if not row.drawn.right]
    naming = [
        row for row in wrong if any(normal(each) in normal(row.drawn.prediction) for each in row.drawn.references)
    ]
    assert len(naming) > len(wrong) / 2


def _pattern(form: str) -> str:
    return re.sub(r"\b[SO]\b", lambda found: f"(?P<{'said' if found[0] == 'S' else 'other'}>.+)", re.escape(form))
