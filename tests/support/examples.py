"""How many examples a property test draws that says it itself: the profile of Hypothesis counts for it too."""

from typing import Final

from hypothesis import settings

USUAL: Final = 100
"""Examples of a test that says nothing, in the usual profile."""


def example_count(usual: int) -> int:
    """Gives `usual` in the usual profile, and as many times more as the loaded one asks for."""
    return max(1, usual * settings.default.max_examples // USUAL)
