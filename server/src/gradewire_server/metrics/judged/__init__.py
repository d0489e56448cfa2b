"""Metrics that ask a judge."""
