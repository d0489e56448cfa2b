"""Imports of server and models, which are installed separately."""

from importlib import import_module
from types import ModuleType
from typing import Literal

from gradewire.cli.problems import InputError


def embedded_module(name: Literal["engine", "fits", "prompts", "serving"] = "engine") -> ModuleType:
    """A module of `gradewire._embedded`, imported when first asked for: it loads the server's libraries.

    Raises:
        InputError: The server's part is not installed; says how to get it.
    """
    return server_module(f"gradewire._embedded.{name}")


def server_module(name: str) -> ModuleType:
    """A module that needs what the server's part brings.

    Raises:
        InputError: The server's part is not installed; says how to get it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0].startswith("gradewire"):
            raise  # an error in our own packages
        needs = f"this needs {error.name} of the server's part, which is not installed"
        raise InputError(f"{needs}: pip install 'gradewire[server]'") from error
