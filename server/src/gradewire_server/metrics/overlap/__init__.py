"""Metrics that count shared words."""
