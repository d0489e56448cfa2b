"""The command `gradewire`, a folder for each of its larger commands; each is imported when it is called."""

from gradewire.cli.group import main

__all__ = ["main"]
