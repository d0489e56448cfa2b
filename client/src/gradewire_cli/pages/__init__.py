"""HTML pages that load nothing: agreement, comparisons, leaderboards and load runs."""
