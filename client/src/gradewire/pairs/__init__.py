"""Pairs of answers, and what comparing them gives."""
