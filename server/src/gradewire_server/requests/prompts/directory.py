"""Prompt files of the operator, beside those that come with the server; requests name them NAME/VERSION."""

import logging
from pathlib import Path

from gradewire_server.metrics.judged.prompts import PROMPTS, PromptError

_log = logging.getLogger(__name__)


class PromptDirectoryError(OSError):
    """The directory cannot be read, or a file in it is no prompt file; the message names it."""


def add_prompts(directory: Path) -> None:
    """Makes all `*.toml` of a directory known to this process; files that are known already change nothing.

    Raises:
        PromptDirectoryError: See there.
    """
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix == ".toml")
        for path in paths:
            prompt = PROMPTS.add(path.read_bytes())
            _log.info("prompt %s for %s is known now (%s)", prompt.title, prompt.metric, prompt.digest[:12])
    except PromptError as error:
        raise PromptDirectoryError(f"judge_prompt_directory: {path.name}: {error}") from error
    except OSError as error:
        raise PromptDirectoryError(f"judge_prompt_directory: cannot read {directory}: {error.strerror}") from error
