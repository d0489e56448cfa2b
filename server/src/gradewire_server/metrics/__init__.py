"""Metrics, which are pure programs without I/O, clocks or models. `registry` finds each metric's file."""
