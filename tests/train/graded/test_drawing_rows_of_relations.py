"""Kinds over relations, nouns, qualities, parts and members, read back by parsers of the tests' own."""

import re
from collections.abc import Sequence

import pytest
from tests.train.graded.conftest import Many, shared, stated

from gradewire_train.material import FLIPS

NAME = r"([A-Z][\w'-]+ [A-Z][\w'-]+)"
THING = r"[Tt]he ([\w' -]+?)"
# Two ways to say one thing: the first names the two in the order of the second's groups reversed.
CONVERSES = [
    (rf"{NAME} sold the [\w' -]+ to {NAME}", rf"{NAME} bought the [\w' -]+ from {NAME}"),
    (rf"{NAME} lent {NAME} the", rf"{NAME} borrowed the [\w' -]+ from {NAME}"),
    (rf"{NAME} taught {NAME}", rf"{NAME} learnt from {NAME}"),
    (rf"{NAME} is a parent of {NAME}", rf"{NAME} is a child of {NAME}"),
    (rf"{NAME} beat {NAME} in the final", rf"{NAME} lost the final to {NAME}"),
    (rf"{NAME} is older than {NAME}", rf"{NAME} is younger than {NAME}"),
    (rf"{NAME} sued {NAME}", rf"{NAME} was taken to court by {NAME}"),
    (rf"{NAME} hired {NAME}", rf"{NAME} got a job from {NAME}"),
    (rf"{NAME} outlived {NAME}", rf"{NAME} died before {NAME}"),
    (rf"{THING} is above the ([\w' -]+)\.", rf"{THING} is below the ([\w' -]+)\."),
    (rf"{THING} is heavier than the ([\w' -]+)\.", rf"{THING} is lighter than the ([\w' -]+)\."),
    (rf"{THING} lies on top of the ([\w' -]+)\.", rf"{THING} lies under the ([\w' -]+)\."),
    (rf"{THING} is larger than the ([\w' -]+)\.", rf"{THING} is smaller than the ([\w' -]+)\."),
]
TURNS = ("not ", "anything but", "opposite", "reverse", "by no means", "far from", "in no way", "contrary")
ALL_OF_IT = re.compile(r"(?<!not the )\b(whole|entire|complete|all of|and all|everything)\b", re.IGNORECASE)
EXCLUDED = re.compile(
    r", but not|[;,] not |[;,] and [^,;]* is not one"
    r"| \(?without|, leaving aside|, while|; [^;]* was left|, as "
)
KINDS = ["converse", "noun_exchanged", "opposite", "part_of", "members"]


def test_a_relation_is_right_from_either_side_and_wrong_with_the_two_exchanged(many: Many) -> None:
    checked = 0
    for row in many("converse"):
        told = [_directed(text) for text in (row.drawn.references[0], stated(row))]
        if None not in told:
            assert (told[0] == told[1]) == row.drawn.right, row
            checked += 1
    assert checked > 15


def test_who_holds_a_role_is_right_if_the_statement_gives_it_to_the_reference(many: Many) -> None:
    checked = 0
    for row in many("converse"):
        asked = re.match(r"who (sold|lent|bought|borrowed) the ", row.drawn.question, re.IGNORECASE)
        told = _directed(stated(row))
        if asked and told and " " in row.drawn.references[0] and not row.drawn.references[0].endswith("."):
            giver, taker = told[1:]
            holder = giver if asked[1].lower() in {"sold", "lent"} else taker
            assert (holder == row.drawn.references[0]) == row.drawn.right, row
            checked += 1
    assert checked > 1


def test_an_event_has_one_other_noun_if_it_is_wrong(many: Many) -> None:
    checked = 0
    for row in many("noun_exchanged"):
        reference, answer = row.drawn.references[0], stated(row)
        if not reference.endswith(".") or answer.count(" ") < 6:
            continue
        changed = [
            _found(reference, each) != _found(answer, each) for each in (FLIPS["spots"], sum(FLIPS["times"], ()))
        ]
        assert sum(changed) <= (0 if row.drawn.right else 1), row
        checked += sum(changed)
    assert checked > 20


def test_a_quality_is_turned_round_as_often_as_its_word(many: Many) -> None:
    words = {each[at] for each in FLIPS["opposite"]["complements"] for at in (0, 2)}
    checked = 0
    for row in many("opposite"):
        reference = row.drawn.references[0]
        answer = stated(row).lower()
        pair = next((each for each in FLIPS["opposite"]["complements"] if reference in {each[0], each[2]}), None)
        if pair is None or reference not in words or pair[1] in answer:
            continue
        said = [each for each in (pair[0], pair[2]) if re.search(rf"\b{each}\b", answer)]
        if len(said) == 1:
            turned = any(each in answer for each in TURNS)
            assert ((said[0] == reference) != turned) == row.drawn.right, row
            checked += 1
    assert checked > 20


def test_a_part_is_not_taken_for_the_whole(many: Many) -> None:
    checked = 0
    for row in many("part_of"):
        texts = row.drawn.references[0], stated(row)
        if not any("not the whole" in text for text in texts):
            # A reference that is a bare noun names the whole.
            bare = re.search(r" of |'s |\bits\b|belongs", texts[0]) is None
            whole = [ALL_OF_IT.search(text) is not None for text in texts]
            assert ((whole[0] or bare) == whole[1]) == row.drawn.right, row
            checked += 1
    assert checked > 100


def test_all_members_are_named_and_no_others_or_it_is_wrong(many: Many) -> None:
    checked = 0
    for row in many("members"):
        wanted = row.drawn.meant.split("|")
        answer = EXCLUDED.split(stated(row))[0]
        named = [each for each in wanted if re.search(rf"\b{re.escape(each)}\b", answer, re.IGNORECASE)]
        if row.drawn.right:
            assert len(named) == len(wanted), row
        else:
            too_many = set(row.drawn.said.split("|")) > set(wanted)
            assert too_many == (len(named) == len(wanted)), row
        checked += 1
    assert checked == len(many("members"))


@pytest.mark.parametrize("kind", KINDS)
def test_some_wrong_answers_share_most_words_with_the_reference(kind: str, many: Many) -> None:
    close = [shared(row) for row in many(kind) if not row.drawn.right]
    assert sum(share > 0.6 for share in close) > len(close) / 5


def _directed(text: str) -> tuple[int, str, str] | None:
    for number, (there, back) in enumerate(CONVERSES):
        if found := re.search(there, text):
            return number, found[1], found[2]
        if found := re.search(back, text):
            return number, found[2], found[1]
    return None


def _found(text: str, phrases: Sequence[str]) -> set[str]:
    return {each for each in phrases if re.search(rf"\b{each}\b", text, re.IGNORECASE)}
