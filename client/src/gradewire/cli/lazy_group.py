"""Commands with subcommands that are imported when they are called: asking for help loads none of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping


class LazyGroup(click.Group):
    """For `click.group(cls=LazyGroup, modules=…)`.

    Args:
        modules: By subcommand: the module that holds `NAME_command` (a hyphen is an underscore there), and its line in
            the list of commands.
    """

    def __init__(self, *arguments: Any, modules: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of `modules`."""
        del ctx
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None where there is none of that name."""
        del ctx
        if cmd_name not in self._modules:
            return None
        command = getattr(import_module(self._modules[cmd_name][0]), f"{cmd_name.replace('-', '_')}_command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list without importing what it lists."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._modules.items()])
