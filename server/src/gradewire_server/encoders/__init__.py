"""Encoders, which compute vectors for metrics, with their caches, single flight and batchers."""
