"""Metrics that use an encoder or a grader."""
