"""Reads prompt files that come inside a request, before it is planned: up to 0.1 s that must not hold the loop."""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Final

from gradewire_proto.conventions.prompt_files import MAX_PROMPT_BYTES
from gradewire_proto.v1 import types_pb2
from gradewire_server.metrics.judged.prompts import PromptError, PromptLibrary

_INLINE_CHARACTERS: Final = range(1025, MAX_PROMPT_BYTES + 1)
"""Shorter ones are names, or read at once; longer ones are refused."""


async def read_ahead(prompts: PromptLibrary, specs: Iterable[types_pb2.MetricSpec]) -> None:
    """Reads long prompts on a thread, where they are remembered; an error in one is left for planning to raise."""
    for spec in specs:
        metric = spec.WhichOneof("metric")
        if metric:
            await read_prompt_ahead(prompts, metric, getattr(getattr(spec, metric), "prompt", ""))


async def read_prompt_ahead(prompts: PromptLibrary, metric: str, prompt: str) -> None:
    """The same for one prompt."""
    if len(prompt) in _INLINE_CHARACTERS:
        with contextlib.suppress(PromptError):  # planning raises it again, with the path of the field
            await asyncio.to_thread(prompts.find, metric, prompt)
