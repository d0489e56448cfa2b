"""`gradewire triton`: mounts the commands that start the real Triton server on this machine."""

from __future__ import annotations

import click

from gradewire_cli.lazy_commands import MountedGroup, server_module


@click.group(
    "triton",
    cls=MountedGroup,
    # Not by way of the server, which is not needed here and takes a second to import.
    commands_of=lambda: server_module("gradewire_triton.cli").triton,
    epilog="""\b
Examples:
  gradewire triton up                          every built model, any free ports; Ctrl-C stops it
  gradewire triton up --grpc-port 8001 --detach
  gradewire triton status
  gradewire triton down
""",
)
def triton_command() -> None:
    """Run the real Triton server on this machine, without a GPU and without NVIDIA's container.

    The server is NVIDIA's own, 2.51; what runs the models emulates its ONNX Runtime backend, which no package
    carries. Good for trying things out and for tests; where there is a GPU, use NVIDIA's container
    (docs/operate/triton.md).
    """
