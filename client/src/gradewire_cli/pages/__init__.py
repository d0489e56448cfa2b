"""HTML pages that load nothing, on agreement, comparisons, leaderboards and load runs."""
