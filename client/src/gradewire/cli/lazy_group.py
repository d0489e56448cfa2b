"""Commands with subcommands that are imported when they are called: asking for help loads none of them."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import click
from typing_extensions import override


class LazyGroup(click.Group):
    """For `click.group(cls=LazyGroup, modules=…)`.

    Args:
        modules: By subcommand: the module that holds `NAME_command` (a hyphen is an underscore there), and its line in
            the list of commands.
    """

    def __init__(self, *arguments: Any, modules: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._modules = modules

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self._modules)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self._modules:
            return None
        command = getattr(import_module(self._modules[cmd_name][0]), f"{cmd_name.replace('-', '_')}_command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is not a command")
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Without importing what is listed.
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._modules.items()])


class MountedGroup(click.Group):
    """The commands of another program, which `commands_of` imports when one of them is called.

    For `click.group(cls=MountedGroup, commands_of=…)`.
    """

    def __init__(self, *arguments: Any, commands_of: Callable[[], click.Group], **options: Any) -> None:
        # Whether defaults are shown in help is for the other program to say, option by option.
        super().__init__(*arguments, context_settings={"show_default": False}, **options)
        self._commands_of = commands_of

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return self._commands_of().list_commands(ctx)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._commands_of().get_command(ctx, cmd_name)
