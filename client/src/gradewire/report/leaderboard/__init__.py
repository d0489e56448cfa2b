"""The page of a leaderboard: one HTML file that loads nothing."""

from gradewire.report.leaderboard.input import BiasLine, LeaderboardInput, QuestionablePair
from gradewire.report.leaderboard.page import write_leaderboard

__all__ = ["BiasLine", "LeaderboardInput", "QuestionablePair", "write_leaderboard"]
