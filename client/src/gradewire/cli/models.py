"""`gradewire models`: mounts the model repository's own commands."""

from __future__ import annotations

import click

from gradewire.cli.lazy_group import MountedGroup
from gradewire.cli.server_extra import embedded_module


def _commands() -> click.Group:
    group = embedded_module().models_group()
    if not isinstance(group, click.Group):
        raise TypeError("the commands of the model repository are not a group")
    return group


@click.group(
    "models",
    cls=MountedGroup,
    commands_of=_commands,
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
