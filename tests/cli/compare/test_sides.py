import re
from typing import Any

import pytest

from gradewire_cli.compare.sides import Matching, Rule, Side, match
from gradewire_cli.problems import InputError
from gradewire_cli.rows.cells import CellReading
from gradewire_cli.rows.columns import Layouts, RowOptions
from gradewire_cli.rows.formats import Record
from gradewire_cli.rows.row import read_rows


def side(name: str, *rows: dict[str, Any], start: int = 0) -> Side:
    records = (Record(start + number, f"line {number + 1}", row) for number, row in enumerate(rows))
    return Side(name, list(read_rows(records, Layouts(RowOptions(needed=())), CellReading())))


def asked(text: str, **more: Any) -> dict[str, Any]:
    return {"question": text, "references": ["r"], "prediction": "p", **more}


def matched(one: Side, other: Side, rule: Rule = "auto", *, duplicates: Any = "error") -> Matching:
    return match(one, other, rule=rule, duplicates=duplicates)


def numbers(found: Matching) -> list[tuple[int, int]]:
    return [(one.index, other.index) for one, other in found.pairs]


def test_ids_match_in_any_order() -> None:
    found = matched(
        side("a", asked("x", id=1), asked("y", id=2)), side("b", asked("y", id=2), asked("x", id="1"), start=10)
    )
    assert (found.rule, numbers(found)) == ("id", [(0, 11), (1, 10)])


def test_questions_match_where_ids_are_those_of_each_model() -> None:
    found = matched(side("a", asked("x", id="x-a")), side("b", asked("x ", id="x-b"), start=10))
    assert (found.rule, numbers(found)) == ("question", [(0, 10)])


def test_the_same_words_with_other_references_or_about_another_image_are_another_question() -> None:
    one = side("a", asked("x", image_id=1), asked("x", image_id=2))
    other = side("b", asked("x", image_id=2), asked("x", image_id=3), start=10)
    assert numbers(matched(one, other)) == [(1, 10)]
    with pytest.raises(InputError, match="no row of b matches a row of a by id or question"):
        matched(side("a", asked("x")), side("b", asked("x", references=["other"])))


def test_a_few_ids_that_are_alike_by_chance_do_not_hide_the_questions() -> None:
    texts = [f"question {number}" for number in range(6)]
    one = side("a", *(asked(text, id=number) for number, text in enumerate(texts)))
    other = side("b", *(asked(text, id=number + 5) for number, text in enumerate(texts)), start=10)
    found = matched(one, other)
    assert (found.rule, len(found.pairs), found.only_baseline) == ("question", 6, [])
    # Where ids join half of the rows they are meant.
    some = side("b", *(asked(texts[number], id=number) for number in range(3)), asked(texts[5], id="x"), start=10)
    found = matched(one, some)
    assert (found.rule, len(found.pairs), len(found.only_candidate)) == ("id", 3, 1)


def test_an_id_of_one_data_set_is_none_of_another() -> None:
    one = side("a", asked("x", id=1, dataset="nq"), asked("y", id=1, dataset="tq"))
    other = side("b", asked("y", id=1, dataset="tq"), start=10)
    assert numbers(matched(one, other)) == [(1, 10)]
    # Where one side names no data set it tells nothing apart.
    assert numbers(matched(side("a", asked("x", id=1, dataset="nq")), side("b", asked("x", id=1), start=10))) == [
        (0, 10)
    ]


def test_rows_of_one_id_that_ask_different_questions_are_refused() -> None:
    one, other = side("a", asked("x", id=1), asked("y", id=2)), side("b", asked("y", id=1), asked("x", id=2))
    with pytest.raises(
        InputError, match=re.escape("2 rows with the same id have different questions in a and b: 1 asks 'x' and 'y'")
    ):
        matched(one, other)
    assert matched(one, other, "question").rule == "question"
    by_id = matched(one, other, "id")
    assert numbers(by_id) == [(0, 0), (1, 1)]
    assert "2 pairs of a and b have the same id but different questions" in list(by_id.notes())


def test_rows_with_ids_that_are_matched_by_question_are_noted() -> None:
    one = side("a", asked("x", id=1), asked("y", id=2))
    other = side("b", asked("x", id="one"), asked("y", id="two"), start=10)
    found = matched(one, other)
    assert (found.rule, numbers(found)) == ("question", [(0, 10), (1, 11)])
    assert list(found.notes()) == ["rows of a and b are matched by question, not by id"]
    without_ids = matched(side("a", asked("x")), side("b", asked("x"), start=10))
    assert (without_ids.rule, list(without_ids.notes())) == ("question", [])


def test_a_row_without_a_question_is_no_other_question() -> None:
    found = matched(side("a", asked("x", id=1)), side("b", {"id": 1, "prediction": "p"}))
    assert (len(found.pairs), found.other_references) == (1, 0)


def test_two_rows_of_one_question_are_refused_by_their_places_or_the_first_is_taken() -> None:
    one, other = side("a", asked("x", id=1)), side("b", asked("x", id=1), asked("x", id=1), start=10)
    with pytest.raises(InputError, match=r"b: line 1 and line 2 have the same id 1\. Use --duplicates first"):
        matched(one, other)
    found = matched(one, other, duplicates="first")
    assert (numbers(found), [row.index for row in found.repeated]) == ([(0, 10)], [11])
    assert list(found.notes()) == ["1 rows repeat a question of their side and are not compared: 1 (line 2)"]


def test_rows_without_a_partner_are_those_of_either_side() -> None:
    one = side("a", *(asked(f"q{number}", id=number) for number in range(9)))
    other = side("b", asked("q0", id=0), asked("new", id="new"), start=10)
    found = matched(one, other)
    assert [row.id for row in found.only_candidate] == ["new"]
    first, second = found.notes()
    assert first == (
        "8 rows of a have no partner in b and are not compared: 1 (line 2), 2 (line 3), 3 (line 4), 4 (line 5), "
        "5 (line 6) and 3 more"
    )
    assert second.startswith("1 rows of b have no partner in a")


def test_other_references_of_one_id_are_told() -> None:
    found = matched(side("a", asked("x", id=1)), side("b", asked("x", id=1, references=["other"])))
    assert found.other_references == 1
    assert "1 pairs of a and b have different references" in next(found.notes())


def test_numbers_match_only_what_says_nothing_else() -> None:
    bare = [side(name, {}, {}, start=start) for name, start in (("a", 0), ("b", 10))]
    assert (matched(*bare).rule, numbers(matched(*bare))) == ("row", [(0, 10), (1, 11)])
    texts = [side(name, {"prediction": "p", "references": "r"}) for name in "ab"]
    with pytest.raises(InputError, match="no row of b matches a row of a"):
        matched(*texts)
    assert matched(*texts, "row").rule == "row"


def test_a_rule_that_fits_nothing_says_so() -> None:
    with pytest.raises(InputError, match="--match id: no row of b has the same id as a row of a"):
        matched(side("a", asked("x")), side("b", asked("x")), "id")


def test_every_row_is_a_partner_alone_or_repeated() -> None:
    one = side("a", *(asked(f"q{number % 7}", id=number % 11) for number in range(30)))
    other = side("b", *(asked(f"q{number % 7}", id=number % 13) for number in range(40)), start=100)
    found = matched(one, other, "question", duplicates="first")
    told = [row.index for pair in found.pairs for row in pair]
    told += [row.index for row in (*found.only_baseline, *found.only_candidate, *found.repeated)]
    assert sorted(told) == [*range(30), *range(100, 140)]
