"""The command `gradewire`: serve, score, prepare, models, agree, triton. Each is imported when it is called."""

from gradewire.cli.group import main

__all__ = ["main"]
