"""Thresholds and probabilities fitted on labelled answers, and read on answers kept aside."""
