"""Self-contained HTML pages on agreement, comparisons, leaderboards and load runs."""
