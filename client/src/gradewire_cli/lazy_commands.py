"""Import a command's module only when the command is called, which keeps --help fast."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

import click
from typing_extensions import override

from gradewire.errors import MissingExtra
from gradewire_cli.help_texts import CommandGroup, help_texts, write_examples
from gradewire_cli.problems import InputError

_EXTRA_BY_PACKAGE = {
    "numpy": "agree",
    "scipy": "agree",
    "threadpoolctl": "agree",
    "jinja2": "agree",
    "prometheus_client": "load",
}


@contextmanager
def named_extra(command: str, extra: str = "") -> Iterator[None]:
    """Turn the error of a missing package into an InputError that names the extra to install.

    Args:
        command: The command that needs the package.
        extra: The extra that the command needs. "" means the extra that contains the missing package.
    """
    try:
        yield
    except MissingExtra as error:
        raise InputError(f"{command}: {error}") from error
    except ModuleNotFoundError as error:
        of_package = _EXTRA_BY_PACKAGE.get((error.name or "").partition(".")[0])
        if of_package is None:
            raise
        raise InputError(
            f"{command} needs {error.name}. Run: pip install 'gradewire[{extra or of_package}]'"
        ) from error


class NotInstalledCommand(click.Command):
    """A command whose packages are not installed. It shows its help without options; every call raises the error.

    Args:
        about: The command's help text.
        examples: Key in help.toml, or "" for a command without examples.
        error: The error, which says what to install.
    """

    def __init__(self, name: str, *, about: str, examples: str, error: InputError) -> None:
        lenient = {"ignore_unknown_options": True, "allow_extra_args": True}
        super().__init__(name, help=about, context_settings=lenient)
        self._examples = examples
        self._error = error

    @override
    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(formatter, help_texts().get(self._examples, {}).get("examples", ""))
        formatter.write_paragraph()
        formatter.write_text(f"To see the options: {self._error.format_message()}")

    @override
    def invoke(self, ctx: click.Context) -> Any:
        raise self._error


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
        if cmd_name not in self._modules:
            return None
        module_name, line = self._modules[cmd_name]
        try:
            with named_extra(cmd_name):
                module = import_module(module_name)
        except InputError as error:
            examples = cmd_name if ctx.parent is None else f"{self.name}-{cmd_name}"
            return NotInstalledCommand(cmd_name, about=line, examples=examples, error=error)
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
        try:
            return self._commands_of().get_command(ctx, cmd_name)
        except InputError as error:
            about = f"A command of gradewire {self.name}."
            return NotInstalledCommand(cmd_name, about=about, examples="", error=error)

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        try:
            super().format_commands(ctx, formatter)
        except InputError as error:
            formatter.write_paragraph()
            formatter.write_text(f"To see the commands: {error.format_message()}")


def server_module(name: str) -> ModuleType:
    """Import and return a module; raise InputError if the server packages are not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0].startswith("gradewire"):
            raise  # an error in our own packages
        message = f"{error.name} is not installed. Run: pip install 'gradewire[server]'"
        raise InputError(message) from error
