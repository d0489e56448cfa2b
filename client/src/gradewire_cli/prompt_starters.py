"""Prompt files to start from, for `gradewire prompt new`."""

import re
from importlib import resources
from typing import Final

STARTERS: Final = {
    "labels": "judge_verdict",
    "one-text": "lave?mode=rationale",
    "last-character": "lave?mode=rationale",
    "dictionary": "judge_grade",
    "pairs": "compare?mode=reason",
}
"""Metrics by form, with the parameters that use the file's variant."""
STARTER_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_NAME: Final = 'name = "NAME"'


def starter(name: str, form: str) -> str:
    """Return the text of a prompt file with this name."""
    text = (resources.files("gradewire_cli") / "starters" / f"{form}.toml").read_text(encoding="utf-8")
    return text.replace(_NAME, f'name = "{name}"', 1)
