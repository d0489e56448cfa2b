"""Scoring rules as pure programs: no I/O, no clock, no model. One file per metric; `registry` finds them."""
