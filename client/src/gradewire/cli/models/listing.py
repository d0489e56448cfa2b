"""`gradewire models list`: what is on this machine, or what a server has."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from gradewire.cli.models.server_text import server_text
from gradewire.cli.options.connection import connection_of, connection_options
from gradewire.cli.problems import InputError, one_line_errors
from gradewire.cli.server_extra import embedded_module

if TYPE_CHECKING:
    from gradewire.cli.options.connection import Connection
    from gradewire.model_list import ModelList
    from gradewire.transport import Transport

_DEADLINE_S = 30.0
# Of the connection's options, those for scoring.
_FIXED = {"cache_dir": None, "deadline_s": _DEADLINE_S}
_HELP = {
    "server": "List what this server has: models, metrics, limits.",
    "embedded": "List what is on this machine, which is the default where no server is named.",
}


def _mounted() -> click.Command:
    """The model repository's own list.

    Raises:
        InputError: The server's part is not installed.
    """
    command: click.Command = embedded_module().models_group().commands["list"]
    return command


class _ListCommand(click.Command):
    """Has the options of the mounted list beside those of the connection, where the server's part is installed."""

    @override
    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = [parameter for parameter in super().get_params(ctx) if parameter.name not in _FIXED]
        for parameter in own:
            if isinstance(parameter, click.Option) and parameter.name in _HELP:
                parameter.help = _HELP[parameter.name]
        try:
            mounted = _mounted().params
        except InputError:
            mounted = []
        *options, help_option = own
        return [*options, *mounted, help_option]


@click.command(
    "list",
    cls=_ListCommand,
    epilog="""\b
Examples:
  gradewire models list
  gradewire models list --server 127.0.0.1:50051     needs nothing here but the client
""",
)
@connection_options
@click.pass_context
def list_command(ctx: click.Context, /, **options: Any) -> None:
    """List the catalog and what of it is built; with --server what a running server has."""
    connection = connection_of({**options, **_FIXED})
    if connection.server is not None:
        with one_line_errors():
            listed = asyncio.run(_listed(connection, ctx.obj))
        click.echo(server_text(listed, connection.place), nl=False)
        return
    local = _mounted()
    taken = {str(parameter.name) for parameter in local.params}
    ctx.invoke(local, **{name: value for name, value in options.items() if name in taken})
    with one_line_errors():
        if missing := embedded_module().missing_synonyms():
            click.echo(f"metric meteor cannot be computed here: {missing}")


async def _listed(connection: Connection, transport: Transport | None) -> ModelList:
    async with connection.open(transport) as client:
        return await client.models()
