"""Limits of prompt files, which the client checks before it sends one and the server when it reads one."""

from typing import Final

MAX_PROMPT_BYTES: Final = 65_536
"""Longest prompt file."""
MAX_DOTS_IN_LINE: Final = 64
"""A TOML parser's work grows with the square of a dotted key's parts: half a minute for one that fills the file."""
