"""Prompt files: what judges are shown. docs/reference/prompt-files.md describes their form."""

from gradewire_server.metrics.judged.prompts.file import (
    Demonstration,
    PromptFile,
    ReferenceForm,
    ReferenceOrder,
    Step,
    Variant,
)
from gradewire_server.metrics.judged.prompts.library import PACKAGE_PROMPTS, PromptLibrary
from gradewire_server.metrics.judged.prompts.reading import read_prompt
from gradewire_server.metrics.judged.prompts.table import PromptError
from gradewire_server.metrics.judged.prompts.template import Rendered

__all__ = [
    "PACKAGE_PROMPTS",
    "Demonstration",
    "PromptError",
    "PromptFile",
    "PromptLibrary",
    "ReferenceForm",
    "ReferenceOrder",
    "Rendered",
    "Step",
    "Variant",
    "read_prompt",
]
