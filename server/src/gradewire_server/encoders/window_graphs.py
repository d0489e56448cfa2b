"""8-bit graphs that choose windows, in a folder of the disk store. A child process writes a missing graph."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from gradewire_models.locks import exclusive
from gradewire_models.processor import has_vnni
from gradewire_models.repository.built import BuiltModel
from gradewire_models.repository.window_graphs import find_graph, remove_leftovers

_log = logging.getLogger(__name__)

FOLDER: Final = "window-graphs"
"""The folder in the disk store."""
_WRITER: Final = "gradewire_models.build.window_graph"
_TIMEOUT_S: Final = 300.0
_CLASS: Final = "fp32-cpu"


class NoGraphError(Exception):
    """Raised when a graph could not be written. The message is for the log."""


def reason_without_graph(model: BuiltModel, folder: Path | None) -> str:
    """Return why an encoder gets no 8-bit graph, or "" if it gets one."""
    if model.numeric_class != _CLASS:
        return "8-bit graphs are made only from models in fp32 for CPUs"
    if model.suffix or model.weights_path is not None:
        return "8-bit graphs are made only from models without a suffix, and with the weights in the graph"
    if not has_vnni():
        return "this processor has no VNNI, without which 8-bit products are not faster"
    return "" if folder is not None else "there is no disk store to keep an 8-bit graph in"


def provide_graph(model: BuiltModel, folder: Path) -> Path:
    """Return the file with a model's graph. Write the graph first if it is missing or damaged.

    Writing takes about 3 s of CPU. Processes that open the same model wait for one of them to write the graph.

    Raises:
        NoGraphError: The graph could not be written.
        OSError: The folder cannot be created, read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder / ".lock", _log.info):
        found = find_graph(folder, model)
        if found is None:
            remove_leftovers(folder, model)
            _write(model, folder)
            found = find_graph(folder, model)
    if found is None:
        raise NoGraphError(f"{_WRITER} left no graph in {folder}")
    return found


def _write(model: BuiltModel, folder: Path) -> None:
    # In a process of its own, because writing needs several times the memory of the graph.
    directory = model.directory
    command = [sys.executable, "-P", "-m", _WRITER, str(directory.parent), directory.name, str(folder)]
    variables = {name: value for name, value in os.environ.items() if not name.upper().startswith("GRADEWIRE_")}
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NoGraphError(f"{_WRITER} did not finish within {_TIMEOUT_S:.0f} s") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise NoGraphError(f"{_WRITER} ended with status {done.returncode}: {last}")
