"""`gradewire bench`: the published tables of evaluators on your rows, and what a server does under load."""

from __future__ import annotations

import click

from gradewire_cli.lazy_commands import LazyGroup

_COMMANDS = {
    "accuracy": ("gradewire_cli.bench.verdicts", "Accuracy of models as each metric sees it, and as people do."),
    "ave": ("gradewire_cli.bench.ave", "AVE: alignment, consistency and generalisation of evaluators."),
    "knvqa": ("gradewire_cli.bench.verdicts", "KNVQA-Eval: verdicts of evaluators against human ones, by model."),
    "load": ("gradewire_cli.bench.load.command", "Put a load on a server, up to twice what it keeps up with."),
    "smile": ("gradewire_cli.bench.smile", "SMILE without one of its terms, and by the weight of its sentence term."),
    "pairs": (
        "gradewire_cli.bench.pairs",
        "VisIT-Bench: which of two answers people prefer, and which evaluators agree.",
    ),
}


@click.group("bench", cls=LazyGroup, modules=_COMMANDS)
def bench_command() -> None:
    """Tables by which papers compare evaluators, from a file of labelled answers; and a server under load."""
