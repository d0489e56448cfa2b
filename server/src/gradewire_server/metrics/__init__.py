"""Scoring rules as pure programs: no I/O, no clocks, no models. A metric is one file, which `registry` finds."""
