"""Recipes: what is written is read back as the same, and what is wrong is named by line and field."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest
from annotated_types import Ge, Le
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic.fields import FieldInfo
from tests.support.examples import example_count

import gradewire_models
from gradewire_train import TrainingError
from gradewire_train.examples import GROUPS, TASKS
from gradewire_train.recipes import (
    Recipe,
    Texts,
    read_recipe,
    recipe_digest,
    recipe_text,
    sections,
    settings_of,
    shipped_recipes,
    with_settings,
)

_ADAPTERS = Path(gradewire_models.__file__).parent / "catalog" / "adapters"


def values(info: FieldInfo) -> st.SearchStrategy[Any]:
    low = next((each.ge for each in info.metadata if isinstance(each, Ge)), None)
    high = next((each.le for each in info.metadata if isinstance(each, Le)), None)
    if choices := get_args(info.annotation):
        return st.lists(st.text(max_size=8), max_size=3).map(tuple) if ... in choices else st.sampled_from(choices)
    if info.annotation is float:
        return st.floats(low, 1e30 if high is None else high, allow_nan=False)
    if info.annotation is int:
        return st.integers(low, 10**9 if high is None else high)
    return st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


RECIPES = st.builds(
    Recipe,
    **{
        name: st.builds(kind, **{n: values(info) for n, info in settings_of(kind).items()})
        for name, kind in sections(Recipe).items()
    },
    only=st.lists(st.sampled_from([*TASKS, *GROUPS]), max_size=3).map(tuple),
)


@settings(max_examples=example_count(20))
@given(recipe=RECIPES)
def test_a_recipe_is_read_back_as_it_was_written(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("recipes") / "recipe.toml"
    path.write_text(recipe_text(recipe), encoding="utf-8")
    assert read_recipe(path, Recipe) == recipe
    assert recipe_digest(read_recipe(path, Recipe)) == recipe_digest(recipe)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[training]\nsteps = 0\n", "line 2: training.steps must be greater than or equal to 1, not 0"),
        ("[objective]\n\ntemperature = nan\n", "line 3: objective.temperature must be a finite number"),
        ("[training]\nlearning_rate = inf\n", "line 2: training.learning_rate"),
        ("[training]\nsteps = 1.5\n", "line 2: training.steps must be a valid integer"),
        ("[training]\nsteps = true\n", "line 2: training.steps must be a valid integer"),
        ("[training]\nmethod = 'lora'\n", "line 2: training.method must be 'adapter' or 'full'"),
        ("[training]\ntargets = 'query'\n", "line 2: training.targets must be a valid"),
        ("[objective]\nsteps = 3\n", r"line 2: objective.steps is unknown"),
        ("only = ['nli']\n[text]\nnli = 3\n", "line 2: text is unknown"),
        ("only = 'nli'\n", "line 1: only must be a valid"),
        ("training = 3\n", "line 1: training must be"),
        ("[training\n", "cannot read the recipe"),
        ("\x00", "cannot read the recipe"),
        ("[training]\nlearning_rate = 1" + "0" * 400, "line 2: training.learning_rate must be a finite number"),
        ("[training]\nsteps = 1" + "0" * 400, "line 2: training.steps must be less than or equal to 1000000000"),
        ("[training]\nsteps = 1" + "0" * 5_000, "cannot read the recipe"),
        ("a = " + "[" * 20_000, "cannot read the recipe"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_field(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TrainingError, match=says):
        read_recipe(path, Recipe)


def test_whole_numbers_do_for_numbers(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("[training]\nalpha = 8\n", encoding="utf-8")
    assert read_recipe(path, Recipe) == with_settings(Recipe(), {"alpha": 8.0})


def test_an_option_overrules_and_is_named_in_its_error() -> None:
    changed = with_settings(Recipe(), {"steps": 7, "nli": 3, "only": ("nli",)})
    assert (changed.training.steps, changed.texts.nli, changed.only) == (7, 3, ("nli",))
    assert changed.objective == Recipe().objective
    with pytest.raises(TrainingError, match="--batch-size must be greater than or equal to 2, not 1"):
        with_settings(Recipe(), {"batch_size": 1})


def test_every_setting_has_a_name_of_its_own_and_every_task_a_count() -> None:
    names = [name for section in sections(Recipe).values() for name in settings_of(section)]
    assert len(set(names)) == len(names)
    assert {spec.name for spec in fields(Texts)} == set(TASKS)


@pytest.mark.parametrize("path", shipped_recipes(Recipe).values(), ids=lambda path: path.stem)
def test_a_shipped_recipe_says_everything(path: Path) -> None:
    recipe = read_recipe(path, Recipe)
    assert path.read_text(encoding="utf-8").partition("\n\n")[2] == recipe_text(recipe)


def test_a_shipped_adapter_names_the_recipe_that_it_was_made_by() -> None:
    recipe = read_recipe(shipped_recipes(Recipe)["sfve-mini"], Recipe)
    facts = json.loads((_ADAPTERS / "sfve-mini" / "gradewire.json").read_text(encoding="utf-8"))
    assert facts["recipe_sha256"] == recipe_digest(recipe)
    # The pooling is newer than that recipe, and counts from the first time that it is set.
    assert recipe_digest(with_settings(recipe, {"pooling": "cls"})) != recipe_digest(recipe)


def test_the_papers_recipe_has_what_the_paper_prints() -> None:
    recipe = read_recipe(shipped_recipes(Recipe)["sfve-paper"], Recipe)
    training, counts = recipe.training, recipe.texts
    assert (training.method, training.batch_size, training.learning_rate, training.weight_decay) == (
        "full",
        128,
        1e-5,
        0.01,
    )
    # Equation 6 has one negative for each sample, and no second term.
    assert (training.negatives, recipe.objective.contrastive_weight) == (1, 1)
    assert (recipe.objective.ranking_weight, recipe.objective.keep_weight) == (0, 0)
    printed = {task: getattr(counts, task) for task in TASKS if getattr(counts, task)}
    assert set(printed) == set(GROUPS)
    assert sum(printed.values()) == 105_311
    assert training.steps == -(-105_311 // 128)
