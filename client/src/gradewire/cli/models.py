"""`gradewire models`: mounts the model repository's own commands."""

from __future__ import annotations

import click

from gradewire.cli.server_extra import embedded_module


class ModelsGroup(click.Group):
    """Stands for the commands of the model repository, which are looked up when one is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands."""
        return _commands().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None where there is none of that name."""
        return _commands().get_command(ctx, cmd_name)


def _commands() -> click.Group:
    group = embedded_module().models_group()
    if not isinstance(group, click.Group):
        raise TypeError("the commands of the model repository are not a group")
    return group


@click.group(
    "models",
    cls=ModelsGroup,
    epilog="""\b
Examples:
  gradewire models list
  gradewire models build                       the default encoder
  gradewire models build all-mpnet-base-v2
  gradewire models build qwen2.5-coder-1.5b-instruct    the default judge (needs gradewire[judge])
  gradewire models export llmrails/ember-v1    any sentence encoder (needs gradewire[export])
  gradewire models verify
""",
)
def models_command() -> None:
    """Build, export, list and verify the encoders and judges on this machine."""
