"""The options of `gradewire bench load`."""

from __future__ import annotations

from typing import Final, get_args

import click

from gradewire.cli.input.files import column_options
from gradewire.cli.options.connection import SERVER_VARIABLE, credential_options, wait_option
from gradewire.cli.options.group import INPUT_FILE, OUTPUT_FILE, FiniteRange, option_group
from gradewire.cli.run.manifest_file import manifest_option
from gradewire.load_testing.content.mixes import MIXES
from gradewire.load_testing.run import ArrivalKind
from gradewire.load_testing.workers.worker import CallKind

_POSITIVE: Final = FiniteRange(min=0, min_open=True)
_RATE: Final = FiniteRange(min=0, min_open=True, max=1e6)
_USUAL_SERVER: Final = "127.0.0.1:50051"

_server_options = option_group(
    click.option(
        "--server",
        metavar="HOST:PORT",
        envvar=SERVER_VARIABLE,
        show_envvar=True,
        default=_USUAL_SERVER,
        help="The server under load; `gradewire serve` starts one.",
    ),
    click.option(
        "--metrics-url",
        metavar="URL",
        help="The server's page of metrics, for its CPU time, memory, queue and cache: http://HOST:PORT/metrics.",
    ),
    credential_options,
    wait_option,
)
_content_options = option_group(
    click.option("--mix", type=click.Choice(list(MIXES)), default="short", help="What is sent; listed below."),
    click.option(
        "--repeat-share",
        type=FiniteRange(0, 1),
        help="Share of answers that were sent before. Default: 0.5 with --mix repeats, else 0, with FILE too.",
    ),
    click.option(
        "--words", type=click.IntRange(3, 900), help="Words of every answer, in place of what --mix says of them."
    ),
    click.option(
        "--metrics",
        help="What is computed, as in gradewire score: 'smile:fast', … Default: smile; lave with --mix judge.",
    ),
    click.option("--batch", type=click.IntRange(1, 1000), default=1, help="Answers of a call."),
    click.option(
        "--call",
        type=click.Choice(get_args(CallKind)),
        default="unary",
        help="Calls of Score, or messages of one long ScoreStream on each connection.",
    ),
    click.option("--deadline-s", type=_POSITIVE, default=5.0, help="Deadline of a call, seconds."),
)
_arrival_options = option_group(
    click.option("--rate", type=_RATE, help="Calls per second of one single step, in place of the search."),
    click.option(
        "--duration",
        type=_POSITIVE,
        help="Seconds of a step. Default: 30 with --rate, else 10, and longer, up to a minute, for --min-calls.",
    ),
    click.option("--min-calls", type=click.IntRange(1), default=500, help="Least calls of a step of the search."),
    click.option("--slo-s", type=_POSITIVE, default=0.25, help="Most that p99 may be at the knee, seconds."),
    click.option(
        "--arrivals", type=click.Choice(get_args(ArrivalKind)), default="poisson", help="How calls of a step come."
    ),
    click.option(
        "--replay",
        type=INPUT_FILE,
        help="Calls arrive as in this file: a number (seconds) a line, or a request log of the server.",
    ),
    click.option("--speed", type=_POSITIVE, default=1.0, help="Of --replay: 2 replays in half the time."),
    click.option("--start-rate", type=_RATE, help="First rate of the search. Default: from a short probe."),
    click.option("--max-rate", type=_RATE, help="Highest rate of the search; twice the knee may be more."),
    click.option(
        "--seed",
        type=click.IntRange(0),
        help="Same seed, same arrivals and answers: a server that has seen them answers from its cache. Default: drawn "
        "for each run, and told.",
    ),
    click.option("--client-processes", type=click.IntRange(1, 256), default=1, help="Processes that send calls."),
    click.option(
        "--connections",
        type=click.IntRange(1, 64),
        default=2,
        help="Connections of each client process; rounded up to as many for each process of the server.",
    ),
)
load_options = option_group(
    click.argument("files", metavar="[FILE]...", nargs=-1),
    _server_options,
    _content_options,
    _arrival_options,
    column_options,
    click.option("--json", "json_path", type=OUTPUT_FILE, help="Write all figures here."),
    click.option("--html", type=OUTPUT_FILE, help="Write a page with plots here; it loads nothing."),
    manifest_option,
    click.option("--quiet", is_flag=True, help="Show no progress."),
)
