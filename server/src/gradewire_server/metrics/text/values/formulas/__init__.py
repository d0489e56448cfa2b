"""Formulas: a bounded parser, and values at fixed points."""
