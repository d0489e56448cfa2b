"""Metric `auto`: cheap metrics decide where they are sure, a judge where they are not."""
