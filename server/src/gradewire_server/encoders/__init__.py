"""Encoders, which compute vectors for metrics, and their caches, single flight and batchers."""
