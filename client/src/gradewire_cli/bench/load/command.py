"""The options of `gradewire bench load`, which do not need the packages of its extra."""

from __future__ import annotations

from typing import Any, Final

import click

from gradewire_cli.bench.load.content import MIXES
from gradewire_cli.lazy_commands import named_extra
from gradewire_cli.options.common import FiniteRange, quiet_option, seed_option
from gradewire_cli.options.connection import (
    deadline_option,
    server_option,
    tls_options,
    token_option,
    wait_option,
)
from gradewire_cli.options.help import command, option, stacked
from gradewire_cli.results.manifest_entries import manifest_option
from gradewire_cli.results.tables import html_option, json_option
from gradewire_cli.rows.input_file import column_options

_POSITIVE: Final = FiniteRange(min=0, min_open=True)
_RATE: Final = FiniteRange(min=0.01, max=1e6)
_load_options = stacked(
    click.argument("files", metavar="[FILE]...", nargs=-1),
    server_option(default="127.0.0.1:50051"),
    token_option,
    *tls_options,
    wait_option,
    deadline_option(5.0),
    option("--metrics-url"),
    option("--mix", type=click.Choice(list(MIXES)), default="short"),
    option("--rate", type=_RATE),
    option("--duration", type=_POSITIVE),
    option("--slo-s", type=_POSITIVE, default=0.25),
    option("--batch", type=click.IntRange(1, 1000), default=1),
    option("--start-rate", type=_RATE),
    option("--max-rate", type=_RATE),
    option("--client-processes", type=click.IntRange(1, 256), default=1),
    seed_option(None),
    column_options,
    option("--metrics", show_default="smile, lave with --mix judge"),
    json_option,
    html_option,
    manifest_option,
    quiet_option,
)


@command(
    "bench-load",
    condition="the server did not keep up with --rate, or broke a promise at twice the knee, or there is no result: "
    "the server kept up with no rate or became unavailable, or the client was the bottleneck",
)
@_load_options
@click.pass_context
def load_command(ctx: click.Context, /, **options: Any) -> None:
    """Load-test a server: search for the knee by raising the rate, then send twice the knee's rate.

    With --rate, send requests at that rate instead of searching, and exit with code 4 if the server does not keep up.

    With FILE, the client sends the file's rows instead of a --mix. Repeated rows cost the server less, so a search
    needs thousands of rows. After Ctrl-C or an error, the command shows a partial result.
    """
    with named_extra("bench load", "load"):
        from gradewire_cli.bench.load.load_test import run_load_test  # noqa: PLC0415 - needs the extra
    ctx.exit(run_load_test(options))
