"""Scoring rules as pure programs: no I/O, no clock, no model. One file per metric, one line each in `registry`."""
