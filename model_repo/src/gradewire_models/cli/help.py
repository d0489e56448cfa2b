"""Commands and groups whose --help shows examples and everyday options, and whose --help-all shows every option."""

from collections.abc import Callable
from typing import Any, Final

import click
import cloup
from typing_extensions import override

Command = Callable[..., None]

SHOWS_ALL: Final = "gradewire.shows_all"
"""Key in the context's `meta`, also used by `gradewire_cli`. Its value is true while --help-all prints."""
_UNCUT: Final = 1000
"""Characters of a command's short text in the list of commands. All our texts are shorter."""


class RareOption(click.Option):
    """An option that only --help-all shows."""

    rare: Final = True

    @override
    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return super().get_help_record(ctx) if ctx.meta.get(SHOWS_ALL) else None


def rare_option(*names: str, **attributes: Any) -> Callable[[Command], Command]:
    """Return an option that only --help-all shows."""
    return click.option(*names, cls=RareOption, **attributes)


class ExampleCommand(cloup.Command):
    """A command with `examples` and grouped options in its help."""

    def __init__(self, *arguments: Any, examples: str = "", **attributes: Any) -> None:
        super().__init__(*arguments, formatter_settings={"col1_max_width": 27}, **attributes)
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
        return [*super().get_params(ctx), *self._own_help(self.params)]

    @override
    def get_ungrouped_options(self, ctx: click.Context) -> list[click.Option]:
        return [*super().get_ungrouped_options(ctx), *self._own_help(self.params)]

    def _own_help(self, parameters: list[click.Parameter]) -> list[click.Option]:
        return [self.help_all] if any(isinstance(each, RareOption) for each in parameters) else []

    @override
    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.examples:
            formatter.write_paragraph()
            formatter.write_text(f"\b\nExamples:\n{self.examples.strip(chr(10))}")

    @override
    def format_params(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = [*self.option_groups, self.get_default_option_group(ctx)]
        sections = [
            cloup.HelpSection(each.title, records) for each in groups if (records := each.get_help_records(ctx))
        ]
        if isinstance(formatter, cloup.HelpFormatter):
            formatter.write_many_sections(sections)

    @override
    def get_default_option_group(
        self, ctx: click.Context, is_the_only_visible_option_group: bool = False
    ) -> cloup.OptionGroup:
        group = super().get_default_option_group(ctx, is_the_only_visible_option_group)
        group.title = "Help"
        return group


class CommandGroup(click.Group):
    """A group whose list of commands shows help texts in full."""

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(_UNCUT)) for name, each in found if each is not None])


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - as click calls it
    if value and not ctx.resilient_parsing:
        ctx.meta[SHOWS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
