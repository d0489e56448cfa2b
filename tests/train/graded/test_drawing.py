"""Rows of all kinds: both labels, the same for the same seed, two parts that share no name, template or drawn noun."""

import re
from collections.abc import Mapping

import pytest
from tests.train.graded.conftest import COUNT, Rows

from gradewire_train import TrainingError
from gradewire_train.examples import lines_digest
from gradewire_train.graded.drawing import Drawer
from gradewire_train.graded.parts import Name
from gradewire_train.material import GRADED, WORDS
from gradewire_train.recipes import GraderRecipe, read_recipe, shipped_recipes
from gradewire_train.texts.draw import normal
from gradewire_train.texts.lexicon import Lexicon

BRACED = {"wrapped", "retracted"}
"""Kinds with JSON, LaTeX and marks of changes, which have braces of their own."""
BLANK = re.compile(r"\{(said|other|first|second|)\}")


def test_every_kind_has_rows_of_both_labels(drawn: Mapping[Name, Rows]) -> None:
    assert len(drawn["train"]) >= 60
    for part in drawn.values():
        for kind, found in part.items():
            assert len(found) == COUNT, kind
            assert 0.4 <= sum(row.drawn.right for row in found) / len(found) <= 0.6, kind


def test_no_row_repeats_and_none_has_a_blank_left(drawn: Mapping[Name, Rows]) -> None:
    for part in drawn.values():
        for kind, found in part.items():
            texts = [(row.drawn.question, row.drawn.references, row.drawn.prediction) for row in found]
            assert len(set(texts)) == len(texts)
            for question, references, prediction in texts:
                assert "{" not in "".join((question, *references))
                assert not BLANK.search(prediction)
                assert "{" not in prediction or kind in BRACED
                assert all(each.strip() for each in (*references, prediction))


def test_no_wrong_answer_is_a_reference_and_nothing_more(rows: Rows) -> None:
    for kind, found in rows.items():
        for row in found:
            if not row.drawn.right:
                assert normal(row.drawn.prediction) not in map(normal, row.drawn.references), (kind, row)


@pytest.fixture(scope="module")
def fresh(lexicon: Lexicon) -> Drawer:
    """One with a lexicon of its own, as a second run has, over the same files."""
    return Drawer(Lexicon(lexicon.wordnet), "train")


@pytest.mark.parametrize(
    "kinds",
    [("definition", "ledger", "science"), ("converse", "opposite", "members"), ("negated", "worked", "wrapped")],
)
def test_one_seed_gives_one_digest_and_the_next_another(
    kinds: tuple[str, ...], drawers: Mapping[Name, Drawer], fresh: Drawer
) -> None:
    first, again, other = (
        lines_digest([row.json() for kind in kinds for row in drawer.rows(kind, 8, seed=seed)])
        for drawer, seed in ((drawers["train"], 1), (fresh, 1), (fresh, 2))
    )
    assert first == again != other


def test_answers_are_of_one_word_and_of_a_hundred(rows: Rows) -> None:
    lengths = [len(row.drawn.prediction.split()) for found in rows.values() for row in found]
    assert min(lengths) == 1
    assert max(lengths) > 100


@pytest.mark.parametrize("names", ["first_names", "last_names"])
def test_no_name_is_in_both_parts(names: str, drawn: Mapping[Name, Rows]) -> None:
    used = {part: _texts(found) for part, found in drawn.items()}
    for name in WORDS[names]:
        assert sum(re.search(rf"\b{name}\b", text) is not None for text in used.values()) <= 1, name


@pytest.mark.parametrize("name", ["remarks", "refusals", "jobs_done", "organisations", "companies", "reasons", "plans"])
def test_no_sentence_is_in_both_parts(name: str, drawn: Mapping[Name, Rows]) -> None:
    used = {part: _texts(found) for part, found in drawn.items()}
    met = [sum(sentence.lower() in text.lower() for text in used.values()) for sentence in GRADED[name]]
    assert max(met) == 1


def test_no_question_about_science_is_in_both_parts(drawn: Mapping[Name, Rows]) -> None:
    asked = [{normal(row.drawn.question) for row in part["science"]} for part in drawn.values()]
    assert all(asked)
    assert not asked[0] & asked[1]


def test_no_noun_is_in_both_parts(drawn: Mapping[Name, Rows]) -> None:
    asked = [{normal(row.drawn.references[0]) for kind in ("precise", "thing") for row in part[kind]}
             for part in drawn.values()]  # fmt: skip
    assert all(asked)
    assert not asked[0] & asked[1]


def _texts(found: Rows) -> str:
    return "\n".join(
        "\n".join((row.drawn.question, *row.drawn.references, row.drawn.prediction))
        for each in found.values() for row in each
    )  # fmt: skip


def test_kinds_are_chosen_by_name_and_an_unknown_one_is_named(lexicon: Lexicon) -> None:
    drawer = Drawer(lexicon, "train")
    assert drawer.chosen(()) == drawer.kinds
    assert drawer.chosen(("unit", "date")) == ("unit", "date")
    with pytest.raises(TrainingError, match="this part has no kind 'dates', only thing, term, "):
        drawer.chosen(("unit", "dates"))


# A kind that is added changes what grader-mini's recipe draws: then name the 61 kinds in the recipe.
@pytest.mark.parametrize(("name", "count"), [("grader-start", 44), ("grader-mini", 61)])
def test_the_recipes_that_ship_draw_the_kinds_that_there_were(lexicon: Lexicon, name: str, count: int) -> None:
    recipe = read_recipe(shipped_recipes(GraderRecipe)[name], GraderRecipe)
    drawer = Drawer(lexicon, "train")
    assert len(drawer.chosen(recipe.material.kinds)) == count
