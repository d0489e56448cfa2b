"""Thresholds and probabilities fitted on labelled answers, and measured on answers held out."""
