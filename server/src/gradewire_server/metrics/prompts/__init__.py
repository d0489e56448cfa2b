"""Prompt files for judges; docs/reference/prompt-files.md describes their form."""
