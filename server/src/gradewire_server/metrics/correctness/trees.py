"""Boosted trees with ramps instead of hard splits, evaluated for one item in a few numpy operations.

With hard splits, the last bit of a vector could change a probability by several points. A split on a feature of width w
therefore sends the share

    clip((x - threshold) / w + 1/2, 0, 1)

of an item to the right, and the remaining share to the left. A tree's value is the mean of its leaves, weighted by the
shares that reach them. Width 0 is a hard split: x <= threshold goes left.

Sources: Friedman 2001, "Greedy Function Approximation: A Gradient Boosting Machine", for the trees; Irsoy, Yildiz and
Alpaydin 2012, "Soft Decision Trees", for soft splits, which have ramps instead of sigmoids here.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from gradewire_server.metrics.correctness.fit_form import TreesForm

MAX_LEVELS: Final = 64


class TreeError(ValueError):
    """Raised when nodes are not valid trees or violate a monotone constraint."""


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """The nodes at one depth. `splits` has the positions from `start` to `stop` in the arrays of `SoftTrees`.

    `values` is None if all nodes split.
    """

    values: NDArray[np.float64] | None
    splits: NDArray[np.intp]
    start: int
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class SoftTrees:
    """Trees in arrays that are ordered by level, from the roots down.

    `feature` and `threshold` are those of `TreesForm`, for the nodes that split.

    Attributes:
        missing_right: float64[splits], the share of an item without the feature that goes to the right, 0 or 1.
        ramps: intp[ramps], the indices of splits that are not hard.
        ramp_threshold: float64[ramps], the thresholds of these splits.
        scale: float64[ramps], 1 / width of each ramp.
        roots: float64[trees], the weights of the roots, all 1.
    """

    levels: tuple[_Level, ...]
    feature: NDArray[np.intp]
    threshold: NDArray[np.float64]
    missing_right: NDArray[np.float64]
    ramps: NDArray[np.intp]
    ramp_threshold: NDArray[np.float64]
    scale: NDArray[np.float64]
    roots: NDArray[np.float64]

    @classmethod
    def of(cls, nodes: TreesForm, widths: NDArray[np.float64], monotone: NDArray[np.int8]) -> Self:
        """Check the nodes and sort them by level.

        Args:
            nodes: The parsed nodes, whose integers are not validated.
            widths: float64[features], at least 0.
            monotone: int8[features]: 1 if the sum must not fall as the feature grows, -1 if it must not rise.

        Raises:
            TreeError: The nodes are not trees, or a split violates a monotone constraint.
        """
        levels = _levels(nodes, len(widths))
        values = np.where(nodes.feature < 0, nodes.value, 0.0)
        _check_monotone(nodes, levels, monotone)
        splits = [level[nodes.feature[level] >= 0] for level in levels]
        order = np.concatenate(splits)
        bounds = np.cumsum([0, *map(len, splits)]).tolist()
        width = widths[nodes.feature[order]]
        ramps = np.flatnonzero(width > 0)
        return cls(
            levels=tuple(
                _Level(
                    values[level] if (nodes.feature[level] < 0).any() else None,
                    np.flatnonzero(nodes.feature[level] >= 0),
                    bounds[row],
                    bounds[row + 1],
                )
                for row, level in enumerate(levels)
            ),
            feature=nodes.feature[order],
            threshold=nodes.threshold[order],
            missing_right=np.where(nodes.missing_left[order], 0.0, 1.0),
            ramps=ramps,
            ramp_threshold=nodes.threshold[order][ramps],
            scale=1.0 / width[ramps],
            roots=np.ones(len(nodes.roots)),
        )

    def value(self, features: NDArray[np.float64]) -> float:
        """Return the sum over all trees for float64[features], with NaN for features that do not apply."""
        found = features.take(self.feature)
        share = (found > self.threshold).astype(np.float64)
        with np.errstate(over="ignore"):  # a split that only tests for a feature's presence has a huge threshold
            ramp = (found[self.ramps] - self.ramp_threshold) * self.scale + 0.5
        share[self.ramps] = np.minimum(np.maximum(ramp, 0.0), 1.0)
        np.copyto(share, self.missing_right, where=np.isnan(found))
        total = 0.0
        weight = self.roots
        for level in self.levels:
            if level.values is not None:
                total += float(weight @ level.values)
            parent = weight.take(level.splits)
            right = parent * share[level.start : level.stop]
            weight = np.concatenate((parent - right, right))
        return total


def _levels(nodes: TreesForm, features: int) -> list[NDArray[np.intp]]:
    """Return the nodes' indices by depth; each level has all left children first, then all right children.

    Raises:
        TreeError: A node has two parents or none, comes before its parent, or splits by an unknown feature.
    """
    count = len(nodes.feature)
    inner = nodes.feature >= 0
    parents = np.flatnonzero(inner)
    children = np.concatenate((nodes.left[inner], nodes.right[inner]))
    if children.size and (np.any(children <= np.tile(parents, 2)) or children.max() >= count):
        raise TreeError("a child comes before its parent or does not exist")
    if nodes.roots.size == 0 or nodes.roots.min() < 0 or nodes.roots.max() >= count:
        raise TreeError("there is no root, or a root is not a node")
    if nodes.feature.max() >= features:
        raise TreeError(f"a node splits by feature {int(nodes.feature.max())}, but there are only {features}")
    if np.any(np.bincount(np.concatenate((nodes.roots, children)), minlength=count) != 1):
        raise TreeError("a node has two parents, or is neither a root nor a child")
    levels = [nodes.roots]
    while np.any(inner[levels[-1]]):
        if len(levels) == MAX_LEVELS:
            raise TreeError(f"a tree has more than {MAX_LEVELS} levels")
        splits = levels[-1][inner[levels[-1]]]
        levels.append(np.concatenate((nodes.left[splits], nodes.right[splits])))
    return levels


def _check_monotone(nodes: TreesForm, levels: list[NDArray[np.intp]], monotone: NDArray[np.int8]) -> None:
    """Raise TreeError if a leaf on the better side of a monotone split has a lower value than a leaf on the worse side.

    In a tree that passes this check, a higher feature value never leads to a worse leaf.
    """
    lowest, highest = nodes.value.copy(), nodes.value.copy()
    for level in reversed(levels):
        at = level[nodes.feature[level] >= 0]
        left, right = nodes.left[at], nodes.right[at]
        lowest[at] = np.minimum(lowest[left], lowest[right])
        highest[at] = np.maximum(highest[left], highest[right])
        direction = monotone[nodes.feature[at]]
        falls = (direction > 0) & (highest[left] > lowest[right])
        rises = (direction < 0) & (lowest[left] < highest[right])
        if np.any(falls | rises):
            node = int(at[falls | rises][0])
            raise TreeError(f"node {node} violates the monotone constraint of feature {int(nodes.feature[node])}")
