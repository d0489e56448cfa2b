"""`gradewire leaderboard`: rates models by verdicts on pairs of their answers."""
