"""Kinds over words and stories: right rows say what the reference says, wrong rows something else."""

import re

from tests.train.graded.conftest import Many, Rows

from gradewire_train.graded.nouns import initials
from gradewire_train.texts.draw import normal
from gradewire_train.texts.lexicon import Lexicon


def test_a_noun_of_another_meaning_shares_no_sense_with_the_reference(many: Many, lexicon: Lexicon) -> None:
    checked = 0
    for row in many("frame"):
        reference = row.drawn.references[0]
        if not row.drawn.right and lexicon.keys_of(reference):
            assert row.drawn.said not in lexicon.mates(reference), row
            checked += 1
    assert checked > 20


def test_who_did_it_is_told_of_the_right_one_alone(rows: Rows) -> None:
    for row in rows["bound_to"]:
        deed = re.sub(r"^who ", "", row.drawn.question, flags=re.IGNORECASE).rstrip("?")
        said = re.search(rf"([\w'-]+ [\w'-]+) {deed}", row.drawn.prediction, re.IGNORECASE)
        assert said is not None, row
        assert (said[1] == row.drawn.references[0]) == row.drawn.right, row


def test_hedged_lists_name_the_reference_and_are_wrong(rows: Rows) -> None:
    for row in rows["hedged"]:
        if not row.drawn.right:
            assert normal(row.drawn.references[0]) in normal(row.drawn.prediction), row


def test_corrections_name_what_they_correct(rows: Rows) -> None:
    for row in rows["corrected"]:
        assert normal(row.drawn.references[0]) in normal(row.drawn.prediction), row


def test_acronyms_are_the_initials_of_the_words_that_count() -> None:
    assert initials("National Bureau of Harbour Safety") == "NBHS"
    assert initials("NBHS") == "NBHS"


def test_a_change_has_the_direction_and_the_size_of_its_reference_or_is_wrong(rows: Rows) -> None:
    ups = ("rose", "increased", "went up", "grew", "up ")
    for row in rows["growth"]:
        told = [_change(text, ups) for text in (row.drawn.references[0], row.drawn.prediction)]
        assert (told[0] == told[1]) == row.drawn.right, row


def test_yes_and_no_are_not_taken_for_each_other(rows: Rows) -> None:
    for row in rows["claim"]:
        first = [re.match(r"(yes|correct|no\b|not at all|certainly not)?", text.lower()) for text in
                 (row.drawn.references[0], row.drawn.prediction)]  # fmt: skip
        told = [each[1] for each in first if each is not None]
        if all(told):
            assert ((told[0] in {"yes", "correct"}) == (told[1] in {"yes", "correct"})) == row.drawn.right, row


def _change(text: str, ups: tuple[str, ...]) -> tuple[bool, str]:
    found = re.search(
        r"(rose|increased|went up|grew|was up|fell|decreased|went down|shrank|was down)\D*([\d.]+\d|\d)", text
    )
    assert found is not None, text
    return found[1].removeprefix("was ").strip() in {each.strip() for each in ups}, found[2]
