"""Validation in training loops: callbacks and metrics for frameworks, sinks, and a spool on disk."""
