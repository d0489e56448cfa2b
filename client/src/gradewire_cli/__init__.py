"""The command `gradewire`, a file or a folder for each of its commands; each is imported when it is called."""

import sys
from typing import NoReturn

from gradewire_proto.exit_codes import ExitCode


def main() -> NoReturn:
    """Run the command line and exit."""
    try:
        from gradewire_cli.group import main as run  # noqa: PLC0415 - without click there is still something to say
    except ModuleNotFoundError as error:
        if error.name not in {"click", "cloup", "rich"}:
            raise
        sys.stderr.write(f"Error: the command needs {error.name}, which is not installed: pip install {error.name}\n")
        sys.exit(ExitCode.UNUSABLE)
    run()
