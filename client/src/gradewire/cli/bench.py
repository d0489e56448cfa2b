"""`gradewire bench`: the published tables of evaluators, on your rows."""

from __future__ import annotations

from importlib import import_module

import click

_COMMANDS = {
    "accuracy": ("gradewire.cli.bench_accuracy", "Accuracy of models as each metric sees it, and as people do."),
    "knvqa": ("gradewire.cli.bench_knvqa", "KNVQA-Eval: verdicts of evaluators against human ones, by model."),
    "pairs": ("gradewire.cli.bench_pairs", "VisIT-Bench: which of two answers people prefer, and who foretells it."),
}


class _Benches(click.Group):
    """Imports a table's command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in alphabetical order."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None where there is none of that name."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(import_module(_COMMANDS[cmd_name][0]), f"{cmd_name}_command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list without importing what it lists."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.group("bench", cls=_Benches)
def bench_command() -> None:
    """Tables by which papers compare evaluators, made from a file of labelled answers."""
