"""Metrics that use a judge."""
