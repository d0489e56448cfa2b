"""A judge's worker process, and its messages."""
