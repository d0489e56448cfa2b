"""Prompt files: what judges are shown. docs/reference/prompt-files.md describes their form."""
