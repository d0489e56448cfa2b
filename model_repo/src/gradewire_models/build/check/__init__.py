"""Checks a built model, and decides whether a variant may be used in place of its base."""
