"""The command `gradewire`: serve, score, prepare, models, agree. Each subcommand is imported when it is called."""

from gradewire.cli.group import main

__all__ = ["main"]
