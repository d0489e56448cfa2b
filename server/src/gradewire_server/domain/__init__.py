"""The types that all server packages share: items, needs, answers and results."""
