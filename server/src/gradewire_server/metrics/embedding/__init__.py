"""Metrics that compare vectors of an encoder."""
