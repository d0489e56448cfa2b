"""Prompt files of the command line, and the metrics that they are for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradewire.cli.problems import InputError, named_errors
from gradewire.metric_types.base import Metric
from gradewire.metric_types.prompt_text import PromptText, read_prompt_text


@dataclass(frozen=True, slots=True)
class GivenPrompt:
    """A prompt file: where it is, and what it says."""

    path: Path
    prompt: PromptText


def read_bytes(path: Path) -> bytes:
    """Reads a file; raises InputError where it cannot be read."""
    with named_errors(path):
        return path.read_bytes()


def read_prompt_file(path: Path) -> GivenPrompt:
    """Reads a prompt file.

    Raises:
        InputError: It cannot be read.
        InvalidRequest: It is no prompt file.
    """
    return GivenPrompt(path, read_prompt_text(read_bytes(path), str(path)))


def with_prompts(metrics: Iterable[Metric], prompts: Sequence[GivenPrompt]) -> list[Metric]:
    """Puts the text of each --prompt file into its metric: the one that names the file, or names no prompt at all.

    Raises:
        InputError: A file is for none of the metrics, or two are for the same.
    """
    used: set[Path] = set()
    filled = []
    for metric in metrics:
        fitting = _fitting(metric, prompts)
        if len(fitting) > 1:
            paths = " and ".join(str(given.path) for given in fitting)
            raise InputError(
                f"--prompt: {paths} are both for {metric.name}: say which in --metrics "
                f"('{metric.name}?prompt={fitting[0].prompt.name}'), or leave one out"
            )
        changes: dict[str, Any] = {"prompt": fitting[0].prompt.text} if fitting else {}
        used.update(given.path for given in fitting)
        filled.append(replace(metric, **changes))
    for given in prompts:
        if given.path not in used:
            raise InputError(
                f"--prompt {given.path}: it is {given.prompt.name} for {given.prompt.metric}, which is not among "
                "--metrics, or says another prompt there"
            )
    return filled


def _fitting(metric: Metric, prompts: Sequence[GivenPrompt]) -> list[GivenPrompt]:
    named = getattr(metric, "prompt", None)
    return [
        given
        for given in prompts
        if given.prompt.metric == metric.name and (not named or given.prompt.is_named_by(named))
    ]
