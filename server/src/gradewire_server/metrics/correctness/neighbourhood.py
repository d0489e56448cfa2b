"""How unlike the fitted rows an item is: the distance to the closest of those that stand for them in the fit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """Some of the fitted rows, by what kind of item they are.

    Attributes:
        columns: intp[used], which numbers of a shape are read.
        scale: float64[used], above 0: their units.
        rows: float64[rows, used], in these units.
        nearest: How many of the closest rows count, at most all.
        near: Distance up to which an item is near.
        far: Distance from which it is far, the larger one.
    """

    columns: NDArray[np.intp]
    scale: NDArray[np.float64]
    rows: NDArray[np.float64]
    nearest: int
    near: float
    far: float

    def distance(self, shape: NDArray[np.float64]) -> float:
        """Mean Euclidean distance of float64[numbers of a shape], finite, to the closest rows; 0 or more."""
        apart = self.rows - shape[self.columns] / self.scale
        squares = np.add.reduce(apart * apart, axis=1)
        return float(np.sqrt(np.partition(squares, self.nearest - 1)[: self.nearest]).mean())

    def far_share(self, distance: float) -> float:
        """0 for what is near, 1 for what is far, a straight line between them."""
        return min(1.0, max(0.0, (distance - self.near) / (self.far - self.near)))
