"""Commands and modules that are imported when they are called: asking for help loads none of them."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import click
from typing_extensions import override

from gradewire.errors import MissingExtra
from gradewire_cli.problems import InputError

_EXTRAS = {
    "numpy": "agree",
    "scipy": "agree",
    "threadpoolctl": "agree",
    "jinja2": "agree",
    "prometheus_client": "load",
}
"""Packages without which a command cannot be imported, and the extra that brings them."""
_OWN_EXTRAS = {"load": "load"}
"""Commands with an extra of their own, which brings all that they import."""


class LazyGroup(click.Group):
    """A group whose `modules` name, by subcommand, the module of its `NAME_command` and its line in the list."""

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
            if (extra := _EXTRAS.get((error.name or "").partition(".")[0])) is None:
                raise
            extra = _OWN_EXTRAS.get(cmd_name, extra)
            raise InputError(f"{cmd_name} needs {error.name}: pip install 'gradewire[{extra}]'") from error
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Without importing what is listed.
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._modules.items()])


class MountedGroup(click.Group):
    """The commands of another program, which `commands_of` imports when one of them is called."""

    def __init__(self, *arguments: Any, commands_of: Callable[[], click.Group], **options: Any) -> None:
        # The other program decides, option by option, if help shows a default.
        super().__init__(*arguments, context_settings={"show_default": False}, **options)
        self._commands_of = commands_of

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return self._commands_of().list_commands(ctx)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._commands_of().get_command(ctx, cmd_name)


def server_module(name: str) -> ModuleType:
    """Return a module that needs what the server's part brings.

    Raises:
        InputError: The server's part is not installed; says how to get it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0].startswith("gradewire"):
            raise  # an error in our own packages
        needs = f"this needs {error.name} of the server's part, which is not installed"
        raise InputError(f"{needs}: pip install 'gradewire[server]'") from error
