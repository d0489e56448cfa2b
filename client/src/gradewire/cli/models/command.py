"""`gradewire models`: mounts the model repository's own commands, and lists what a server has."""

from __future__ import annotations

import click
from typing_extensions import override

from gradewire.cli.lazy_group import MountedGroup
from gradewire.cli.models.listing import list_command
from gradewire.cli.problems import InputError
from gradewire.cli.server_extra import embedded_module


def _commands() -> click.Group:
    group = embedded_module().models_group()
    if not isinstance(group, click.Group):
        raise TypeError("the commands of the model repository are not a group")
    return group


class _ModelsGroup(MountedGroup):
    """The mounted commands, but for `list`, which can ask a server: then nothing is needed here but the client."""

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
    commands_of=_commands,
    epilog="""\b
Examples:
  gradewire models list
  gradewire models list --server 127.0.0.1:50051
  gradewire models build                       the default encoder
  gradewire models build all-mpnet-base-v2
  gradewire models build qwen2.5-coder-1.5b-instruct    the default judge (needs gradewire[judge])
  gradewire models export llmrails/ember-v1    any sentence encoder (needs gradewire[export])
  gradewire models verify
""",
)
def models_command() -> None:
    """Build, export, list and verify the encoders and judges on this machine."""
