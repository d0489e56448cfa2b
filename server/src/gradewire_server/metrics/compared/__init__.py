"""Comparisons of two answers to one question."""
