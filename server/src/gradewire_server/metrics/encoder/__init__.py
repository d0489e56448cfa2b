"""Metrics that ask an encoder or a grader."""
