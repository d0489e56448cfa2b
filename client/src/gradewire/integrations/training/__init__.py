"""Validation in training loops: callbacks and metrics of frameworks, sinks, and a spool on disk."""
