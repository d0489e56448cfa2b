"""Prompt files: what judges are shown. docs/reference/prompt-files.md describes their form."""

from gradewire_server.metrics.prompts.library import PACKAGE_PROMPTS, PromptLibrary, read_prompt
from gradewire_server.metrics.prompts.prompt_file import (
    Demonstration,
    PromptFile,
    ReferenceForm,
    ReferenceOrder,
    Step,
    Variant,
)
from gradewire_server.metrics.prompts.template import PromptError, Rendered

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
