"""Prompt files for judges; docs/reference/prompt-files.md describes their format."""
