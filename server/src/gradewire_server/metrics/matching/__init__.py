"""Metrics that look for a reference in the prediction."""
