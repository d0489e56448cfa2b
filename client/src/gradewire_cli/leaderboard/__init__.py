"""`gradewire leaderboard`: rate models by verdicts on pairs of their answers."""
