"""Dates and times of day."""
