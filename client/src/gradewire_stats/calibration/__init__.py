"""Thresholds and probabilities, fitted on labelled answers and tested on held-out answers."""
