"""Import a command's module only when the command is called, which keeps --help fast."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import click
from typing_extensions import override

from gradewire.errors import MissingExtra
from gradewire_cli.help_texts import CommandGroup
from gradewire_cli.problems import InputError

_EXTRA_BY_PACKAGE = {
    "numpy": "agree",
    "scipy": "agree",
    "threadpoolctl": "agree",
    "jinja2": "agree",
    "prometheus_client": "load",
}
_EXTRA_BY_COMMAND = {"load": "load"}


class LazyGroup(CommandGroup):
    """A group that maps each subcommand's name to a module with `NAME_command`, and to a line of help."""

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
        try:
            module = import_module(self._modules[cmd_name][0])
        except MissingExtra as error:
            raise InputError(f"{cmd_name}: {error}") from error
        except ModuleNotFoundError as error:
            if (extra := _EXTRA_BY_PACKAGE.get((error.name or "").partition(".")[0])) is None:
                raise
            extra = _EXTRA_BY_COMMAND.get(cmd_name, extra)
            raise InputError(f"{cmd_name} needs {error.name}. Run: pip install 'gradewire[{extra}]'") from error
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    @override
    def command_lines(self, ctx: click.Context) -> list[tuple[str, str]]:
        del ctx
        return [(name, line) for name, (_, line) in self._modules.items()]


class MountedGroup(CommandGroup):
    """A group with another program's commands, which `commands_of` imports when you call one of them."""

    def __init__(self, *arguments: Any, commands_of: Callable[[], click.Group], **options: Any) -> None:
        super().__init__(*arguments, context_settings={"show_default": False}, **options)
        self._commands_of = commands_of

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return self._commands_of().list_commands(ctx)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._commands_of().get_command(ctx, cmd_name)


def server_module(name: str) -> ModuleType:
    """Import and return a module; raise InputError if the server packages are not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0].startswith("gradewire"):
            raise  # an error in our own packages
        message = f"{error.name} is not installed. Run: pip install 'gradewire[server]'"
        raise InputError(message) from error
