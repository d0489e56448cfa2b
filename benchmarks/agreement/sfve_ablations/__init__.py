"""Train SFVE's recipe without one task at a time, with several seeds, and measure AVE's properties on stand-ins."""

from collections.abc import Mapping
from typing import Any, Final

ALL: Final = "all tasks"
GENERATED: Final = "generated texts alone"
OURS: Final = "with our tasks and ranking"
UNTRAINED: Final = "untrained"
# The printed rate is for 823 steps of 128; runs of a few thousand examples need a higher one.
SMALL: Final[Mapping[str, Any]] = {"learning_rate": 1e-4}
OUR_TASKS: Final = ("numbers", "colours", "yes_no", "names", "dates")
CHANGES: Final[Mapping[str, Mapping[str, Any]]] = {
    ALL: {},
    OURS: {"ranking_weight": 1.0, "negatives": 2},
    "without synonyms": {"without": ("synonyms",)},
    "without descriptions": {"without": ("descriptions",)},
    "without nli": {"without": ("nli",)},
    "without candidates": {"without": ("candidates",)},
    "low-rank adapter": {"method": "adapter", "learning_rate": 5e-4, "dropout": 0.0},
    GENERATED: {},
    "the printed rate": {"learning_rate": 1e-5},
}
"""The settings of each kind of run that differ from the recipe `sfve-paper` at small scale."""
FINAL: Final = (UNTRAINED, ALL)
"""The kinds that are measured on NQ301, too."""
SETS: Final = {"a": "fit split", "b": "held-out split", "apart": "NQ301"}
"""The sets that are measured: both halves of EVOUNA's stand-in, and that of NQ301."""
