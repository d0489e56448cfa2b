"""`gradewire models`: mount the model repository's commands and list a server's models."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from gradewire_cli.lazy_commands import MountedGroup, server_module
from gradewire_cli.options.connection import ConnectionOptions, connection_of, connection_options
from gradewire_cli.options.help import Command, command
from gradewire_cli.problems import InputError, one_line_errors
from gradewire_cli.rows.formats import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradewire.results import Limits, MetricInfo, ModelInfo, ModelList
    from gradewire.transport import Transport

_DEADLINE_S = 30.0
_JUDGE = ("judge_url", "judge_backend", "judge_key_env", "judge_remote_model", "judge_reasoning_tokens", "judge_device")
# These connection options matter only for scoring.
_FIXED: dict[str, Any] = {"cache_dir": None, "models_dir": None, "deadline_s": _DEADLINE_S, **dict.fromkeys(_JUDGE)}


def server_text(listed: ModelList, place: str) -> str:
    """Return a server's models, metrics and limits as printable text."""
    return "".join(f"{printable(line)}\n" for line in _lines(listed, place))


def _lines(listed: ModelList, place: str) -> Iterator[str]:
    yield f"{place}: gradewire {listed.server_version}"
    for model in listed.models:
        yield from _model(model)
    yield "metrics:"
    for metric in listed.metrics:
        yield from _metric(metric, f": {metric.minimum:g} to {metric.maximum:g}")
    if listed.comparisons:
        yield "comparisons of two answers:"
    for comparison in listed.comparisons:
        yield from _metric(comparison)
    yield "limits of a request:"
    yield from _limits(listed.limits)


def _model(model: ModelInfo) -> Iterator[str]:
    default = " (default)" if model.is_default else ""
    facts = [
        model.licence,
        f"{model.dims} dims" if model.dims else "",
        f"at most {model.max_tokens} tokens" if model.max_tokens else "",
        model.numeric_class,
        _sight(model),
    ]
    yield f"{model.kind} {model.name}{default}: {model.state}{f', digest {model.digest}' if model.digest else ''}"
    if known := ", ".join(filter(None, facts)):
        yield f"  {known}"
    for line in (
        model.message,
        model.how_to_get and f"to get this model, run this on the server's machine: {model.how_to_get}",
        *model.remarks,
    ):
        if line:
            yield f"  {line}"
    for metric, reason in sorted(model.without_metrics.items()):
        yield f"  cannot compute {metric}: {reason}"


def _sight(model: ModelInfo) -> str:
    if model.sees_images:
        return "sees pictures"
    # Before a judge's first call, the server may not know whether the judge sees pictures.
    return "sees no pictures" if model.kind == "judge" and model.state == "LOADED" else ""


def _metric(metric: MetricInfo, scale: str = "") -> Iterator[str]:
    yield f"  {metric.name}/{metric.version}{scale}{' (needs a judge)' if metric.needs_judge else ''}"
    if not metric.available:
        yield f"    unavailable: {metric.missing or 'the server gives no reason'}"


def _limits(limits: Limits) -> Iterator[str]:
    for field in fields(limits):
        # 0 means an unreported limit.
        if value := getattr(limits, field.name):
            yield f"  {field.name}: {value}"


def _mounted() -> click.Command:
    command: click.Command = server_module("gradewire_models.cli.group").models.commands["list"]
    return command


class _ListCommand(Command):
    @override
    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = [parameter for parameter in super().get_params(ctx) if parameter.name not in _FIXED]
        with suppress(InputError):
            own += _mounted().params
        return own


@command("models-list", cls=_ListCommand)
@connection_options
@click.pass_context
def list_command(ctx: click.Context, /, **options: Any) -> None:
    """List the catalog and the built models, or with --server a running server's models."""
    connection = connection_of({**options, **_FIXED})
    if connection.server is not None:
        with one_line_errors():
            listed = asyncio.run(_listed(connection, ctx.obj))
        click.echo(server_text(listed, connection.description), nl=False)
        return
    local = _mounted()
    taken = {str(parameter.name) for parameter in local.params}
    ctx.invoke(local, **{name: value for name, value in options.items() if name in taken})
    with one_line_errors():
        if missing := server_module("gradewire_cli.server_settings").missing_synonyms():
            click.echo(f"metric meteor is unavailable here: {missing}")


async def _listed(connection: ConnectionOptions, transport: Transport | None) -> ModelList:
    async with connection.open(transport) as client:
        return await client.models()


class _ModelsGroup(MountedGroup):
    """The mounted commands with our own `list`, which works without the server packages."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        try:
            return super().list_commands(ctx)
        except InputError:
            return [str(list_command.name)]

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return list_command if cmd_name == list_command.name else super().get_command(ctx, cmd_name)


@click.group(
    "models",
    cls=_ModelsGroup,
    commands_of=lambda: server_module("gradewire_models.cli.group").models,
    examples="models",
)
def models_command() -> None:
    """Build, export, list and verify the encoders and judges on this machine."""
