"""The command `gradewire`, which imports a subcommand's module only when you call the subcommand."""

import sys
from typing import NoReturn

from gradewire_proto.exit_codes import ExitCode


def main() -> NoReturn:
    """Run the command line and exit."""
    try:
        from gradewire_cli.group import main as run  # noqa: PLC0415 - so that `main` can report a missing click
    except ModuleNotFoundError as error:
        if error.name not in {"click", "cloup", "rich"}:
            raise
        sys.stderr.write(f"Error: {error.name} is not installed. Run: pip install {error.name}\n")
        sys.exit(ExitCode.UNUSABLE)
    run()
