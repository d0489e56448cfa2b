"""Prompt files of requests and of the operator, and what a judge is shown of an item."""
