"""Kinds over negations, quantities, conditions and calculations, read back by parsers of the tests' own."""

import re

import pytest
from tests.train.graded.conftest import Many, shared, stated

# Words that turn a statement round. Two of them cancel each other.
TURNING = re.compile(
    r"\b(not|didn't|doesn't|never|cannot|no|nobody|nothing|hardly|fail(?:ed)?|forg[eo]t|refused|without|lacks?|neglect(?:ed)?"
    r"|unable|yet to|avoided|lie|kept \w+ \w+ from|kept [\w ]+ from|give up|given up|stopped|objects?|miss)\b"
)
# Statements in which a second clause repeats the first.
REPEATED = ("anybody will miss", "objects to")
AMOUNTS = [
    ("neither", r"^neither of the two \w+ (?!is an exception)|none of the two|not the first|^0 of the 2 |not even one"),
    (
        "both",
        r"^both of|the two \w+ both|each of the two|2 of the 2 |the same is true of the second|and the other one too",
    ),
    ("single", r"(only|exactly|just) one of the (two|pair)|^1 of the 2 |the other not|a single one of the two"),
    ("every", r"^all of|every one of|^each of the (?!two)|without exception|one hundred percent|^the \w+ all "),
    ("none", r"^none of the (?!two)|not one of|not a single one|not any of|zero percent|^0 of the (?!2 )|^no \w+ "),
    ("few", r"^few of|^2 of the (?!2 )|small minority|hardly any|one or two|very few|handful|apart from a few"),
    ("most", r"^most of|majority|more than half|over half|larger part|most of them|for the most part"),
    ("mixed", r"but not all|others not|only some|rest not|just a part|by no means all"),
    ("some", r"^at least one|one or more|minimum of one|perhaps more"),
]
ANY_CASE = re.compile(
    r"in any case|whether|no matter|even if|any condition|and also if|makes no difference|not only when|strings|"
    r"without exception|, and if"
)
IF = re.compile(r"^(.+?),? (?:if|as long as|on condition that|provided that|but only if|only if) ([^,]+)\.$")
ELSEWHERE = ("Hat ", "Trinkt", "Wurde", "Est-ce", "fume", "train", "Ha ", "¿")
KINDS = ["negated", "quantified", "conditional"]


def test_a_statement_is_right_if_it_is_turned_round_as_often_as_the_reference(many: Many) -> None:
    checked = 0
    for row in many("negated"):
        reference, answer = row.drawn.references[0], stated(row)
        if any(word in row.drawn.question for word in ELSEWHERE):
            continue
        if any(each in (reference + answer).lower() for each in REPEATED):
            continue
        turned = [len(TURNING.findall(text.lower())) % 2 for text in (reference, answer)]
        assert (turned[0] == turned[1]) == row.drawn.right, row
        checked += 1
    assert checked > 60


def test_a_negation_in_another_language_is_one_of_two_that_agree(many: Many) -> None:
    german = [row for row in many("negated") if "Rechnung" in row.drawn.question]
    for row in german:
        unpaid = [re.search(r"bezahlt\.$", text) is None or "nicht" in text for text in
                  (row.drawn.references[0], row.drawn.prediction)]  # fmt: skip
        unpaid = [each and "nicht vergessen" not in text for each, text in
                  zip(unpaid, (row.drawn.references[0], row.drawn.prediction), strict=True)]  # fmt: skip
        assert (unpaid[0] == unpaid[1]) == row.drawn.right, row
    assert german


def test_a_count_or_year_implies_yes_or_no(many: Many) -> None:
    checked = 0
    for row in many("affirmed"):
        question = row.drawn.question.lower()
        limits = re.findall(r"\d+", question)
        said = [int(each) for each in re.findall(r"\d+", row.drawn.prediction)]
        if len(limits) == len(said) == 1:
            more = re.search(r"more than|above", question) is not None
            holds = said[0] > int(limits[0]) if more else said[0] < int(limits[0])
        elif len(said) == 2 and not limits:
            # The answer's first year belongs to the first person of the question.
            holds = said[0] < said[1] if re.search(r"before|earlier", question) else said[0] > said[1]
        else:
            continue
        agreed = re.match(r"yes|true|it is so", row.drawn.references[0].lower()) is not None
        assert (holds == agreed) == row.drawn.right, row
        checked += 1
    assert checked > 40


def test_no_implied_answer_says_yes_or_no(many: Many) -> None:
    assert not any(
        re.match(r"(yes|no|true|false)\b(?! longer)", row.drawn.prediction.lower()) for row in many("affirmed")
    )


def test_the_higher_number_belongs_to_the_reference_if_the_question_asks_for_more(many: Many) -> None:
    for row in many("numbers_compared"):
        question, answer = row.drawn.question, stated(row)
        less = re.search(r"younger|fewer|less|lower|earlier|first", question) is not None
        own, other = (
            _number_of(answer, name) for name in (row.drawn.references[0], _other_name(answer, row.drawn.references[0]))
        )
        assert ((own < other) == less) == row.drawn.right, row


def test_an_amount_is_right_if_it_is_the_same_of_the_whole(many: Many) -> None:
    checked = 0
    for row in many("quantified"):
        amounts = [_amount(text) for text in (row.drawn.references[0], stated(row))]
        if None not in amounts:
            assert (amounts[0] == amounts[1]) == row.drawn.right, row
            checked += 1
    assert checked > 40


def test_a_rule_with_a_condition_is_not_one_that_always_holds(many: Many) -> None:
    checked = 0
    for row in many("conditional"):
        reference, answer = row.drawn.references[0], stated(row)
        conditional = [not ANY_CASE.search(text) for text in (reference, answer)]
        if not answer or not any(
            each in reference for each in (" if ", "If ", " when ", "When ", "nless", " provided", " long as")
        ):
            continue
        if conditional[0] != conditional[1]:
            assert not row.drawn.right, row
            checked += 1
        found = [IF.match(text.lower()) for text in (reference, answer)]
        if found[0] and found[1] and found[0][1] == found[1][1] and all(conditional):
            assert (found[0][2] == found[1][2]) == row.drawn.right, row
            checked += 1
    assert checked > 20


def test_the_last_number_of_a_calculation_decides(many: Many) -> None:
    for row in many("worked"):
        groups, each, *changes = (int(number) for number in re.findall(r"\d+", row.drawn.question))
        wanted = groups * each - changes[0] + sum(changes[1:])
        assert row.drawn.references == (str(wanted),)
        last = re.findall(r"\d+", row.drawn.prediction)[-1]
        assert (last == str(wanted)) == row.drawn.right, row


def test_some_wrong_calculations_contain_the_reference(many: Many) -> None:
    wrong = [row for row in many("worked") if not row.drawn.right]
    assert sum(row.drawn.references[0] in re.findall(r"\d+", row.drawn.prediction) for row in wrong) > len(wrong) / 5


@pytest.mark.parametrize("kind", KINDS)
def test_some_wrong_statements_share_most_words_with_the_reference(kind: str, many: Many) -> None:
    close = [shared(row) for row in many(kind) if not row.drawn.right]
    assert sum(share > 0.6 for share in close) > len(close) / 5


def _other_name(text: str, name: str) -> str:
    return next(each for each in re.findall(r"[A-Z][\w'-]+ [A-Z][\w'-]+", text) if each != name)


def _number_of(text: str, name: str) -> int:
    """The first number after the name, or the last one before it where the statement has the numbers first."""
    before, _, after = text.partition(name)
    if "books by" in text:
        return int(re.findall(r"\d+", before)[-1])
    return int(re.findall(r"\d+", after)[0])


def _amount(text: str) -> str | None:
    bare = text.lower().rstrip(".")
    return next((name for name, cue in AMOUNTS if re.search(cue, bare)), None)
