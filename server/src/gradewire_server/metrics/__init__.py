"""Scoring rules as pure programs: no I/O, no clock, no model. A metric is one file, and `registry` finds it."""
