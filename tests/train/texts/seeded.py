"""Generators of chance for tests."""

from random import Random


def seeded(seed: int) -> Random:
    """The same draws for the same seed."""
    return Random(seed)  # noqa: S311 - tests, not secrets
