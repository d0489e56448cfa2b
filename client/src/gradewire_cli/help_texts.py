"""The texts of help.toml, and groups of commands that show them."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any, Final

import click
from typing_extensions import override

_UNCUT: Final = 1000
"""Characters of a command's short text in the list of commands. All our texts are shorter."""


class CommandGroup(click.Group):
    """A group whose help shows examples, then a list of commands, each with its full help text."""

    def __init__(self, *arguments: Any, examples: str = "", **attributes: Any) -> None:
        """Initialise the group. `examples` is a key in help.toml, or "" for a group without examples."""
        super().__init__(*arguments, **attributes)
        self.examples = examples

    @override
    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.examples:
            write_examples(formatter, help_texts()[self.examples]["examples"])

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if lines := self.command_lines(ctx):
            with formatter.section("Commands"):
                formatter.write_dl(lines)

    def command_lines(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Return each command's name and short text."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        return [(name, each.get_short_help_str(_UNCUT)) for name, each in commands if each is not None]


def help_texts() -> dict[str, dict[str, str]]:
    """Return the contents of help.toml."""
    return toml("help.toml")


def write_examples(formatter: click.HelpFormatter, examples: str) -> None:
    """Write the examples of a help text; write nothing if `examples` is empty."""
    if examples:
        formatter.write_paragraph()
        formatter.write_text(f"\b\nExamples:\n{examples.strip(chr(10))}")


@functools.cache
def toml(name: str) -> dict[str, dict[str, Any]]:
    """Return the contents of a TOML file of this package."""
    return tomllib.loads((resources.files("gradewire_cli") / name).read_text(encoding="utf-8"))
