"""How many examples a property test draws that says it itself: the profile of Hypothesis counts for it too."""

from typing import Final

from hypothesis import settings

USUAL: Final = 100
"""The examples of a test that sets no number. `make test-search` draws ten times as many, afresh."""
FIXED: Final = 40
"""The examples that `make test` draws of the usual ones. They are the same every time, so more find nothing new."""
_LEAST: Final = 5
"""A test that says fewer than these draws all of them."""


def example_count(usual: int) -> int:
    """Gives the loaded profile's share of `usual` examples: 0.4 in `make test`, 10 in `make test-search`."""
    return max(min(usual, _LEAST), usual * settings.default.max_examples // USUAL)
