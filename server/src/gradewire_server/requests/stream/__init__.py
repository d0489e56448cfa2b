"""ScoreStream: items come and results go at the same time."""
