"""Commands whose --help shows the everyday options in named groups, and whose --help-all shows every option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import cloup
from typing_extensions import override

from gradewire_cli.help_texts import help_texts, toml, write_examples
from gradewire_cli.problems import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Decorated = TypeVar("Decorated", bound="Callable[..., Any]")

HELP: Final = "Help"
"""Title of the last group, which contains --help and --help-all."""
_SHOWS_ALL: Final = "gradewire.shows_all"
"""Key in the context's `meta`, also used by `gradewire_models.cli.help`. Its value is true while --help-all prints."""
_FLAG_COLUMNS: Final = 27
"""Width of a flag and its placeholder in characters. Most help texts fit into the rest of 100 columns."""
_METAVARS: Final = {"integer": "N", "integer range": "N", "float": "X", "float range": "X"}
_NOT_SHOWN: Final = ("range", "required")
"""Extras that click adds to a help text. We drop them because error messages contain the same information."""


class Option(click.Option):
    """An option with a short placeholder.

    Attributes:
        rare: If true, only --help-all shows the option.
    """

    def __init__(self, *arguments: Any, group: str, rare: bool = False, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.rare, self.group = rare, cloup.OptionGroup(group)

    @override
    def make_metavar(self, ctx: click.Context) -> str:
        if self.metavar is None and str(self.name).endswith("_s"):
            return "SECONDS"
        return self.metavar or _METAVARS.get(self.type.name) or super().make_metavar(ctx)

    @override
    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return None if self.rare and not ctx.meta.get(_SHOWS_ALL) else super().get_help_record(ctx)

    @override
    def get_help_extra(self, ctx: click.Context) -> Any:
        extra: dict[str, Any] = {**super().get_help_extra(ctx)}
        default = str(extra.get("default", ""))
        if default.startswith("("):  # click puts a default's description into parentheses
            extra["default"] = default[1:-1]
        return {name: text for name, text in extra.items() if name not in _NOT_SHOWN and text not in {"", '""'}}


class Command(cloup.Command):
    """A command whose help shows examples, then the options in groups."""

    def __init__(self, *arguments: Any, examples: str = "", **attributes: Any) -> None:
        super().__init__(*arguments, formatter_settings={"col1_max_width": _FLAG_COLUMNS}, **attributes)
        self.examples = examples
        self.help_all = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show all options and exit.",
        )

    @override
    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        parameters = super().get_params(ctx)
        return [*parameters, self.help_all] if any(map(is_rare, parameters)) else parameters

    @override
    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(formatter, self.examples)

    @override
    def format_params(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in sorted(self.get_params(ctx), key=is_rare):
            groups.setdefault(group_of(parameter), [])
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None:
                groups[group_of(parameter)].append(record)
        groups[HELP] = groups.pop(HELP)
        sections = [cloup.HelpSection(title, records) for title, records in groups.items() if records]
        if isinstance(formatter, cloup.HelpFormatter):
            formatter.write_many_sections(sections)


def is_rare(parameter: click.Parameter) -> bool:
    """Return True if only --help-all shows the parameter."""
    return bool(getattr(parameter, "rare", False))


def group_of(parameter: click.Parameter) -> str:
    """Return the title of a parameter's group."""
    if (group := getattr(parameter, "group", None)) is not None:
        return str(group.title)
    return HELP if {"--help", "--help-all"} & {*parameter.opts} else "Options"


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - as click calls it
    if value and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def option(*names: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    """Return an option with the texts that options.toml contains for its first flag."""
    texts = toml("options.toml")[names[0].partition("/")[0].removeprefix("--")]
    return click.option(*names, cls=Option, **{**texts, **attributes})


def stacked(*options: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Return a decorator that applies these decorators (options, arguments, …) in this order."""

    def add(command: Decorated) -> Decorated:
        for each in reversed(options):
            command = each(command)
        return command

    return add


def command(  # noqa: PLR0913 - all optional and named
    name: str,
    *,
    cls: type[Command] = Command,
    about: str | None = None,
    failed_rows: str = "",
    condition: str = "",
    not_better: str = "",
    **blocks: str,
) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that creates a command.

    Args:
        name: Key in help.toml, which contains the examples and the text below the options. The key is the command's
            name, with the group's name and a hyphen before it.
        cls: The command's class.
        about: Help text above the examples. None means the docstring.
        failed_rows: Meaning of exit code 1, see `exit_codes`.
        condition: Meaning of exit code 4, see `exit_codes`.
        not_better: Meaning of exit code 5, see `exit_codes`.
        blocks: Values of additional placeholders in the text below the options.
    """
    texts = help_texts()[name]
    codes = exit_codes(failed_rows=failed_rows, condition=condition, not_better=not_better)
    end = texts["text"].format(columns=column_help(), exit_codes=codes, **blocks)
    attributes = {"examples": texts["examples"], "epilog": end, "help": about}
    return click.command(name.partition("-")[2] or name, cls=cls, **attributes)


def column_help() -> str:
    """Return the help text about a row's columns."""
    return help_texts()["columns"]["text"]


def column_lines(usual: Mapping[str, Sequence[str]]) -> str:
    """Return a line for each field, with the names of the columns that may contain the field."""
    width = max(map(len, usual)) + 1
    return "\n".join(f"  {name:<{width}} {' '.join(columns)}" for name, columns in usual.items())
