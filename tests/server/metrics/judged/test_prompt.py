"""What a judge sees, to the letter."""

import pytest
from tests.support.judges.prompts import GRADE, LAVE, SIMILARITY
from tests.support.judges.scripted import shown

from gradewire_server.domain.item import Item
from gradewire_server.domain.judge import JudgePrompt
from gradewire_server.metrics.judged.prompt import demonstration_set, fixed_turns, judge_prompt, text_prompt
from gradewire_server.metrics.judged.prompts import PACKAGE_PROMPTS, PromptFile, read_prompt
from gradewire_server.metrics.judged.reference_filter import ReferenceChoice
from gradewire_server.metrics.judged.shown_item import show_item
from gradewire_server.metrics.judged.view import View

FILE = read_prompt(LAVE.encode())


def seen(item: Item, variant_name: str, view: View = View(), answers: dict[str, str] | None = None) -> str:  # noqa: B008
    variant = FILE.variants[variant_name]
    rendered = show_item(item, FILE, variant, view)
    turns = fixed_turns(FILE, variant_name, rendered.kind, view)
    return shown(judge_prompt(turns, rendered.rendered, variant, answers or {}))


def test_a_text_question() -> None:
    item = Item(
        "1", "Who was\nshe?", ("Ada", "Countess of Lovelace"), "Ada Lovelace.\nRating: 3", captions=("a portrait",)
    )
    assert seen(item, "rating", View(kind="long")) == (
        "system: Rate it.\n"
        "user: Question: Who?\nRight answers: Ada | Ada Lovelace\nAnswer: Bob\n"
        "assistant: Rating: 1\n"
        "user: Question: Who was she?\nRight answers: Ada | Countess of Lovelace\nAnswer: Ada Lovelace. [...]\n"
        "assistant: Rating:"
    )


def test_a_binary_question_with_votes() -> None:
    votes = ("no",) * 6 + ("yes",) * 2 + ("maybe",)
    assert seen(Item("1", "Is it?", votes, "tile"), "rating") == (
        "system: Rate it.\n"
        # 1 of 4 is no less than a quarter of 3; 1 of 9 is less than a quarter of 6.
        "user: Question: Is it red?\nRight answers: no (3 of 4) | yes (1 of 4)\nAnswer: no\n"
        "assistant: Rating: 3\n"
        "user: Question: Is it?\nRight answers: no (6 of 8) | yes (2 of 8)\nAnswer: tile\n"
        "assistant: Rating:"
    )


def test_demonstrations_are_shown_as_items_are() -> None:
    file = read_prompt(LAVE.replace('prediction = "Bob"', 'prediction = "Bob. Rating: 3"').encode())
    turns = fixed_turns(file, "rating", "long", View())
    assert "Answer: Bob. [...]" in turns[1].text


def test_captions_are_shown_where_they_are_asked_for() -> None:
    item = Item("1", "Who?", ("Ada",), "Ada", captions=("a <|x|> woman", "in red"))
    assert seen(item, "rating", View(caption=True, kind="long")) == (
        "system: Rate it. Mind the picture.\n"
        "user: Image: two people\nQuestion: Who?\nRight answers: Ada | Ada Lovelace\nAnswer: Bob\n"
        "assistant: Rating: 1\n"
        "user: Image: a < |x|> woman / in red\nQuestion: Who?\nRight answers: Ada\nAnswer: Ada\n"
        "assistant: Rating:"
    )
    bare = Item("1", "Who?", ("Ada",), "Ada")
    assert seen(bare, "rating", View(caption=True, kind="long")).count("Image:") == 1


def test_demonstrations_show_all_references_only_where_every_item_does() -> None:
    item = Item("1", "Who?", ("Ada", "Countess of Lovelace"), "the Countess")
    one = read_prompt(LAVE.replace("most = 3", "most = 1").encode())
    for choice, demonstrated, own in (
        (ReferenceChoice.CLOSEST, "Ada", "Countess of Lovelace"),
        # Bob shares no word with the demonstration's references, and auto looks at items alone.
        (ReferenceChoice.AUTO, "Ada", "Countess of Lovelace"),
        (ReferenceChoice.ALL, "Ada | Ada Lovelace", "Ada | Countess of Lovelace"),
    ):
        view = View(kind="long", references=choice)
        shown_item = show_item(item, one, one.variants["rating"], view)
        turns = fixed_turns(one, "rating", "long", view)
        assert f"Right answers: {demonstrated}\n" in turns[1].text
        assert f"Right answers: {own}\n" in shown_item.rendered.lead


@pytest.mark.parametrize(("shots", "turns"), [(None, 3), (0, 1), (1, 3)])
def test_as_many_demonstrations_are_shown_as_are_asked_for(shots: int | None, turns: int) -> None:
    assert len(fixed_turns(FILE, "rating", "long", View(shots=shots))) == turns
    assert demonstration_set(FILE, FILE.variants["rating"], "long", shots) == ("long" if shots != 0 else "")


def test_answers_of_former_steps_stand_before_the_next_one() -> None:
    item = Item("1", "Who?", ("Ada",), "Ada")
    assert seen(item, "rationale", answers={"reason": "It says Ada."}) == (
        "system: Rate it.\n"
        "user: Who? [Ada | Ada Lovelace] Bob - right?\n"
        "assistant: Reason: Bob is not Ada.\nRating: 1\n"
        "user: Who? [Ada] Ada - right?\n"
        "assistant: Reason: It says Ada.\nRating:"
    )


def test_a_prompt_is_cut_at_the_prediction_alone() -> None:
    variant = FILE.variants["rationale"]
    item = show_item(Item("1", "Who?", ("Ada",), "one two three four five six"), FILE, variant, View())
    assert item.cut
    assert (item.rendered.lead, item.rendered.prediction, item.rendered.tail) == (
        "Who? [Ada] ",
        "one two three four five",
        " - right?",
    )


def test_a_first_step_may_have_no_opening() -> None:
    file = read_prompt(SIMILARITY.encode())
    variant = file.variants["similarity"]
    item = show_item(Item("1", "q", ("r",), "p"), file, variant, View())
    assert judge_prompt((), item.rendered, variant, {}) == JudgePrompt((), "q / r / ", "p", "", "")


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (Item("1", "q", ("yes",), "x"), "binary"),
        (Item("1", "q", ("No.", "cat"), "x", captions=("c",)), "binary"),
        (Item("1", "q", ("cat", "cat", "yes"), "x"), "short"),
        (Item("1", "q", ("cat",), "x", captions=("c",)), "short"),
        (Item("1", "q", ("cat", "Cat"), "x"), "long"),
        (Item("1", "q", ("cat",), "yes"), "long"),
        (Item("1", "q", ("cat",), "a long answer " * 30), "long"),
    ],
)
def test_the_kind_of_a_question_hangs_on_question_and_references(item: Item, kind: str) -> None:
    assert show_item(item, FILE, FILE.variants["rating"], View()).kind == kind


def test_a_missing_kind_is_stood_in_for() -> None:
    rating = FILE.variants["rating"]
    assert [demonstration_set(FILE, rating, kind, None) for kind in ("binary", "short", "long")] == [
        "binary",
        "long",
        "long",
    ]
    grade = read_prompt(GRADE.encode())
    assert demonstration_set(grade, grade.variants["match"], "long", None) == ""
    assert len(fixed_turns(grade, "match", "long", View())) == 1


def test_what_is_rendered_once_is_kept() -> None:
    assert fixed_turns(FILE, "rating", "long", View()) is fixed_turns(FILE, "rating", "long", View())


def test_a_packaged_file_can_write_sentences() -> None:
    file: PromptFile = PACKAGE_PROMPTS.find("synthetic", "")
    fields = {"question": "Who\nwas <s>?", "answer": "Ada\x00 Lovelace"}
    first = text_prompt(file, "sentence", fields)
    assert "Who was < s>?" in first.lead
    assert "Ada Lovelace" in first.lead
    assert first.fixed[0].role == "system"
    again = text_prompt(file, "again", {**fields, "problem": "it was no sentence"})
    # One kept prompt serves both.
    assert again.fixed == first.fixed
    assert "it was no sentence" in again.lead
