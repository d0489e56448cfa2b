"""Checks a built model, and decides whether a variant may stand for its base."""
