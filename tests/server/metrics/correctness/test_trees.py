"""Trees with ramps for splits: what they say, that they keep their directions, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.examples import example_count

from gradewire_server.metrics.correctness.fit_form import TreesForm
from gradewire_server.metrics.correctness.trees import MAX_LEVELS, SoftTrees, TreeError

FEATURES = 3
LEAF = -1
Tree = float | tuple[int, float, bool, Any, Any]
"""A leaf's value, or (feature, threshold, missing_left, left, right)."""


def nodes_of(trees: list[Tree]) -> TreesForm:
    """The trees in one array, each written from its root down."""
    rows: list[list[Any]] = []

    def write(tree: Tree) -> int:
        place = len(rows)
        if not isinstance(tree, tuple):
            rows.append([LEAF, 0.0, False, LEAF, LEAF, tree])
            return place
        feature, threshold, missing_left, left, right = tree
        rows.append([feature, threshold, missing_left, 0, 0, 0.0])
        rows[place][3], rows[place][4] = write(left), write(right)
        return place

    roots = [write(tree) for tree in trees]
    feature, threshold, missing_left, left, right, value = zip(*rows, strict=True)
    return TreesForm.model_construct(
        roots=np.array(roots),
        feature=np.array(feature),
        threshold=np.array(threshold),
        missing_left=np.array(missing_left),
        left=np.array(left),
        right=np.array(right),
        value=np.array(value),
    )


def by_hand(tree: Tree, x: NDArray[np.float64], widths: NDArray[np.float64]) -> float:
    """What a tree says, node by node."""
    if not isinstance(tree, tuple):
        return tree
    feature, threshold, missing_left, left, right = tree
    if math.isnan(x[feature]):
        share = 0.0 if missing_left else 1.0
    elif widths[feature] == 0:
        share = float(x[feature] > threshold)
    else:
        share = min(1.0, max(0.0, (x[feature] - threshold) / widths[feature] + 0.5))
    return (1 - share) * by_hand(left, x, widths) + share * by_hand(right, x, widths)


def ascending(tree: Tree, values: list[float]) -> Tree:
    """The tree with leaves that rise from left to right."""
    if not isinstance(tree, tuple):
        return values.pop(0)
    return (*tree[:3], ascending(tree[3], values), ascending(tree[4], values))


def leaves(tree: Tree) -> list[float]:
    return [*leaves(tree[3]), *leaves(tree[4])] if isinstance(tree, tuple) else [tree]


def laid_out(trees: list[Tree], widths: Any = (0.0,) * FEATURES, monotone: Any = (0,) * FEATURES) -> SoftTrees:
    return SoftTrees.of(nodes_of(trees), np.array(widths, dtype=float), np.array(monotone, dtype=np.int8))


VALUES = st.floats(-4, 4)
TREES: st.SearchStrategy[Tree] = st.recursive(
    VALUES,
    lambda tree: st.tuples(st.integers(0, FEATURES - 1), VALUES, st.booleans(), tree, tree),
    max_leaves=12,
)
WIDTHS = st.lists(st.just(0.0) | st.floats(0.01, 3), min_size=FEATURES, max_size=FEATURES).map(np.array)
ITEMS = st.lists(VALUES | st.just(math.nan), min_size=FEATURES, max_size=FEATURES).map(np.array)


@given(st.lists(TREES, min_size=1, max_size=4), WIDTHS, ITEMS)
def test_the_layout_says_what_the_trees_say(trees: list[Tree], widths: Any, item: Any) -> None:
    expected = sum(by_hand(tree, item, widths) for tree in trees)
    assert laid_out(trees, widths).value(item) == pytest.approx(expected, abs=1e-12)


def test_a_ramp_is_the_mean_of_steps_whose_thresholds_are_shifted() -> None:
    tree = (0, 1.0, True, -1.0, 3.0)
    soft = laid_out([tree], widths=(0.4, 0, 0))
    shifts = (np.arange(1000) + 0.5) / 1000 * 0.4 - 0.2
    for x in (0.5, 0.85, 1.0, 1.13, 1.5):
        item = np.array([x, 0, 0])
        steps = [laid_out([(0, 1.0 + shift, True, -1.0, 3.0)]).value(item) for shift in shifts[::50]]
        assert soft.value(item) == pytest.approx(np.mean(steps), abs=0.2)
        assert soft.value(item) == pytest.approx(np.where(x > 1.0 + shifts, 3.0, -1.0).mean(), abs=0.005)


def test_at_the_threshold_of_a_step_an_item_goes_left() -> None:
    assert laid_out([(0, 1.0, True, -1.0, 3.0)]).value(np.array([1.0, 0, 0])) == -1.0


def test_a_small_move_moves_a_ramp_little_and_a_step_by_all_of_it() -> None:
    moved = np.array([1.0 + 1e-5, 0, 0]), np.array([1.0, 0, 0])
    step, ramp = (laid_out([(0, 1.0, True, -1.0, 3.0)], widths=(width, 0, 0)) for width in (0.0, 0.02))
    assert step.value(moved[0]) - step.value(moved[1]) == 4.0
    assert ramp.value(moved[0]) - ramp.value(moved[1]) == pytest.approx(4 * 1e-5 / 0.02, rel=1e-6)


def test_a_threshold_that_only_asks_for_a_value_takes_all_values_left() -> None:
    last = float(np.finfo(np.float64).max)
    for width in (0.0, 0.5):
        trees = laid_out([(0, last, False, 1.0, 2.0)], widths=(width, 0, 0))
        assert trees.value(np.array([1e300, 0, 0])) == 1.0
        assert trees.value(np.array([math.nan, 0, 0])) == 2.0


@settings(max_examples=example_count(200))
@given(TREES, WIDTHS, ITEMS, st.integers(0, FEATURES - 1), st.floats(0, 3), st.sampled_from([1, -1]))
def test_trees_that_are_let_through_keep_their_direction(
    tree: Tree, widths: Any, item: Any, feature: int, more: float, direction: int
) -> None:
    values = sorted(leaves(tree), reverse=direction < 0)
    trees = laid_out([ascending(tree, values)], widths, monotone=(direction,) * FEATURES)
    raised = item.copy()
    raised[feature] += more  # NaN stays NaN
    assert direction * (trees.value(raised) - trees.value(item)) >= -1e-12


@pytest.mark.parametrize(("monotone", "tree"), [(1, (0, 0.0, True, 2.0, 1.0)), (-1, (0, 0.0, True, 1.0, 2.0))])
def test_a_split_against_its_direction_is_refused(monotone: int, tree: Tree) -> None:
    with pytest.raises(TreeError, match="violates the monotone constraint of feature 0"):
        laid_out([tree], monotone=(monotone, 0, 0))
    laid_out([tree], monotone=(-monotone, 1, 1))


def test_a_leaf_deep_on_the_wrong_side_is_refused_too() -> None:
    deep: Tree = (0, 0.0, True, (1, 0.0, True, 0.0, 3.0), (1, 0.0, True, 1.0, 4.0))
    with pytest.raises(TreeError, match="node 0 violates"):
        laid_out([deep], monotone=(1, 0, 0))


GOOD = nodes_of([(0, 1.0, True, (1, 0.0, False, -1.0, 0.5), 3.0), 0.25])


@pytest.mark.parametrize(
    "broken",
    [
        GOOD.model_copy(update={"left": np.array([1, 0, -1, -1, -1, -1])}),  # a cycle
        GOOD.model_copy(update={"left": np.array([1, 99, -1, -1, -1, -1])}),  # not there
        GOOD.model_copy(update={"left": np.array([1, 4, -1, -1, -1, -1])}),  # two parents
        GOOD.model_copy(update={"right": np.array([1, 3, -1, -1, -1, -1])}),  # the same child twice
        GOOD.model_copy(update={"roots": np.array([0])}),  # a node of no tree
        GOOD.model_copy(update={"roots": np.array([0, 2])}),
        GOOD.model_copy(update={"roots": np.array([0, -1])}),
        GOOD.model_copy(update={"roots": np.array([], dtype=int)}),
        GOOD.model_copy(update={"feature": np.array([0, FEATURES, -1, -1, -1, -1])}),
    ],
)
def test_nodes_that_are_no_trees_are_refused(broken: TreesForm) -> None:
    SoftTrees.of(GOOD, np.zeros(FEATURES), np.zeros(FEATURES, dtype=np.int8))
    with pytest.raises(TreeError):
        SoftTrees.of(broken, np.zeros(FEATURES), np.zeros(FEATURES, dtype=np.int8))


def test_depth_is_bounded() -> None:
    tree: Tree = 1.0
    for _ in range(MAX_LEVELS - 1):
        tree = (0, 0.0, True, tree, 1.0)
    assert laid_out([tree]).value(np.zeros(FEATURES)) == 1.0
    with pytest.raises(TreeError, match="levels"):
        laid_out([(0, 0.0, True, tree, 1.0)])
