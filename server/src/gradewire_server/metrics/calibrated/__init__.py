"""Metric `calibrated`: the probability that an answer is right."""
