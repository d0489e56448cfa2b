"""The command line's entry point, which turns each error into one line and an exit code."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
from typing_extensions import override

from gradewire_cli.lazy_commands import LazyGroup
from gradewire_cli.problems import fail, silence_stdout
from gradewire_proto.exit_codes import ExitCode
from gradewire_proto.tracing.factory import open_tracing
from gradewire_proto.tracing.settings import TracingSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_TRACED: Final = frozenset({"compare", "leaderboard", "prepare", "rank", "score"})
_COMMANDS = {
    "agree": ("gradewire_cli.agree.command", "Compare scores with human labels."),
    "bench": ("gradewire_cli.group", "Reproduce tables from papers, or load-test a server."),
    "bulk": ("gradewire_cli.bulk.command", "Score large inputs on Ray, in parts that survive an interruption."),
    "calibrate": ("gradewire_cli.calibrate.command", "Fit thresholds on labelled answers."),
    "compare": ("gradewire_cli.compare.command", "Compare models or runs without labels."),
    "gateway": ("gradewire_cli.serving", "Start an HTTP gateway in front of a server."),
    "label": ("gradewire_cli.label.command", "Label answers by hand on a local page, uncertain ones first."),
    "leaderboard": ("gradewire_cli.leaderboard.command", "Rate models by verdicts on pairs of their answers."),
    "models": ("gradewire_cli.models", "Build, list and verify encoders and judges."),
    "prepare": ("gradewire_cli.prepare", "Prepare references before answers arrive."),
    "prompt": ("gradewire_cli.prompt", "Show the prompts that judges see."),
    "rank": ("gradewire_cli.rank.command", "Rank several answers to each question by a judge."),
    "score": ("gradewire_cli.score.command", "Score the answers in a file."),
    "serve": ("gradewire_cli.serving", "Start a server."),
    "triton": ("gradewire_cli.serving", "Run the real Triton server on this machine."),
}
_BENCH_COMMANDS = {
    "accuracy": ("gradewire_cli.bench.accuracy", "Models' accuracy according to each metric and to human labels."),
    "ave": ("gradewire_cli.bench.ave", "AVE: evaluators' alignment, consistency and generalization."),
    "flips": ("gradewire_cli.bench.flips", "Metrics' reactions to one changed place, and to harmless edits."),
    "knvqa": ("gradewire_cli.bench.accuracy", "KNVQA-Eval: evaluators' verdicts against human verdicts, by model."),
    "load": ("gradewire_cli.bench.load.command", "Load-test a server, up to twice the rate that it sustains."),
    "make-ave": ("gradewire_cli.bench.make_ave", "AVE: make samples for bench ave from your own graded answers."),
    "smile": ("gradewire_cli.bench.smile", "SMILE without one of its terms, and with different sentence weights."),
    "sts": ("gradewire_cli.bench.sts", "STS average: correlation with grades of sentence pairs on seven test sets."),
    "pairs": (
        "gradewire_cli.bench.pairs",
        "VisIT-Bench: evaluators' agreement with annotators who prefer one of two answers.",
    ),
}


@contextmanager
def traced_command(arguments: Sequence[str]) -> Iterator[None]:
    """Trace a command and its calls in one span if a collector is configured."""
    command = next((text for text in arguments if not text.startswith("-")), "")
    # sample the whole trace
    settings = TracingSettings(sample_ratio=1.0)
    is_on = command in _TRACED and settings.is_on()
    is_installed = is_on and find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk") is not None
    tracing = open_tracing(settings, "gradewire") if is_installed else None
    if tracing is None:
        yield
        return
    from opentelemetry import trace  # noqa: PLC0415 - see the docstring
    from opentelemetry._logs import set_logger_provider  # noqa: PLC0415 - as above

    trace.set_tracer_provider(tracing.traces)
    if tracing.logs is not None:
        set_logger_provider(tracing.logs)
    try:
        with tracing.tracer.start_as_current_span(f"gradewire {command} (command)"):
            yield
    finally:
        tracing.close()


class _Root(LazyGroup):
    """The group of all commands. If the reader of the output has stopped, the group exits with a special code."""

    @override
    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        with _closed_output():
            return super().make_context(*arguments, **extra)

    @override
    def invoke(self, ctx: click.Context) -> Any:
        with _closed_output():
            return super().invoke(ctx)


@contextmanager
def _closed_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        silence_stdout()
        raise click.exceptions.Exit(ExitCode.CLOSED) from error


@click.group(
    cls=_Root,
    modules=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
    epilog="Each command has a --help with examples. GRADEWIRE_DEBUG=1 prints the traceback of an error.",
)
@click.version_option(message="gradewire %(version)s", package_name="gradewire")
def gradewire() -> None:
    """Grade free-form answers: how right is an answer, given its references?

    \b
    First steps:
      gradewire models build                                build the default encoder, once
      gradewire score answers.jsonl --out scores.jsonl      score a file in this process
      gradewire serve                                       or start a server, and then
      gradewire score answers.jsonl --server 127.0.0.1:50051
    """  # noqa: D301 - click does not rewrap the lines after a backspace


@click.group("bench", cls=LazyGroup, modules=_BENCH_COMMANDS, examples="bench")
def bench_command() -> None:
    """Reproduce papers' tables on evaluators from a file of labelled answers, or load-test a server."""


def main() -> NoReturn:
    """Run the command line and exit."""
    # Without this variable, gRPC logs every broken header from a caller.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # At its end, Python would look for garbage among all imported objects, which takes up to a quarter of a second.
    atexit.register(gc.freeze)
    try:
        with traced_command(sys.argv[1:]):
            code = gradewire.main(prog_name="gradewire", standalone_mode=False)
    except click.exceptions.Abort as error:
        fail(error, ExitCode.INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        fail(error, error.exit_code, hint=f"see {error.ctx.command_path} --help" if error.ctx else "")
    except click.ClickException as error:
        fail(error, error.exit_code)
    except OSError as error:
        # An error without a file name comes from standard output, e.g. on a full disk.
        silence_stdout()
        fail(error, ExitCode.UNUSABLE, hint="" if error.filename else "writing to standard output")
    sys.exit(code if isinstance(code, int) else ExitCode.DONE)
