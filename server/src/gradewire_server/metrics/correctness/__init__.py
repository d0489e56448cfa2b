"""Metric `correctness`: the probability that an answer is right."""
