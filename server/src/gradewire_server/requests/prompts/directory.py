"""Prompt files of the operator, beside those that come with the server; requests name them NAME/VERSION."""

import logging
from pathlib import Path

from gradewire_server.metrics.judged.prompts import PACKAGE_PROMPTS, PromptError, PromptLibrary, read_prompt

_log = logging.getLogger(__name__)


class PromptDirectoryError(OSError):
    """The directory cannot be read, or a file in it is no prompt file; the message names it."""


def open_prompts(directory: Path | None) -> PromptLibrary:
    """The prompts of a server: those of the package and all `*.toml` of its own directory, where it has one.

    Raises:
        PromptDirectoryError: The directory or a file in it cannot be used.
    """
    prompts = PACKAGE_PROMPTS
    if directory is None:
        return prompts
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix == ".toml")
        for path in paths:
            prompt = read_prompt(path.read_bytes())
            prompts = prompts.with_file(prompt)
            _log.info("prompt %s for %s is known now (%s)", prompt.title, prompt.metric, prompt.digest[:12])
    except PromptError as error:
        raise PromptDirectoryError(f"judge_prompt_directory: {path.name}: {error}") from error
    except OSError as error:
        raise PromptDirectoryError(f"judge_prompt_directory: cannot read {directory}: {error.strerror}") from error
    return prompts
