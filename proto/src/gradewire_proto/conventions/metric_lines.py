"""A metric on one line: what reproduces a score.

Grammar: `NAME[:PRESET][/VERSION][?KEY=VALUE&…]`, keys in alphabetical order, values percent-quoted, for instance
`smile:v1/1?model=all-MiniLM-L6-v2@53aa51172d14&sentence_weight=0.3&synthetic=none`. Models and prompts carry the first
digits of their digest; a prompt is named, never written out.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

DIGEST_PREFIX_CHARS: Final = 12
"""Hex digits of a digest in a line: enough to tell models and prompts apart, short enough to read."""
LINE: Final = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?::(?P<preset>\w+))?(?:/(?P<version>[0-9]+))?(?:\?(?P<parameters>.*))?", re.ASCII
)
FORMER_NAMES: Final = {"calibrated": "correctness"}
"""Names that metrics had, and the names they have: what carries an old one is read as if it had the new one."""
_FORMER: Final = re.compile(rf"({'|'.join(FORMER_NAMES)})(?!\w)")
# What stays readable in a value.
_SAFE: Final = {"prompt": "@/"}


def current(text: str) -> str:
    """Return the name, line, label or column of a metric with the name that the metric has now in front."""
    found = _FORMER.match(text)
    return text if found is None else FORMER_NAMES[found[1]] + text[found.end() :]


def with_digest(name: str, digest: str) -> str:
    """How a line names a model or a prompt."""
    return f"{name}@{digest[:DIGEST_PREFIX_CHARS]}"


def join_line(name: str, values: Mapping[str, object], *, version: int | None = None) -> str:
    """The line of a metric.

    Args:
        name: Of the metric.
        values: Preset and parameters by name, in any order; None is left out, and so is an empty preset.
        version: Of the metric's definition; None leaves it out.
    """
    preset = f":{values['preset']}" if values.get("preset") else ""
    written = {key: _text(value) for key, value in values.items() if key != "preset" and value is not None}
    query = "&".join(f"{key}={quote(written[key], safe=_SAFE.get(key, '@'))}" for key in sorted(written))
    return f"{name}{preset}{'' if version is None else f'/{version}'}{'?' if query else ''}{query}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
