"""Stores of vectors, verdicts, synthetic answers and corpora: memory, disk, Redis."""
