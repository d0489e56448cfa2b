"""Read judges' prompt files, and name prompts in metric identifiers."""

import hashlib
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gradewire.errors import InvalidRequest
from gradewire_proto.wire_rules import MAX_DOTS_IN_LINE, MAX_PROMPT_BYTES, with_digest


@dataclass(frozen=True, slots=True)
class PromptText:
    """A prompt file: its metric, its name (NAME/VERSION), its SHA-256 (64 hex digits) and its whole text."""

    metric: str
    name: str
    digest: str
    text: str

    @property
    def pinned(self) -> str:
        """The prompt's name in metric identifiers, NAME/VERSION@DIGEST."""
        return with_digest(self.name, self.digest)

    def is_named_by(self, prompt: str) -> bool:
        """Return True if NAME/VERSION or NAME/VERSION@DIGEST names this file."""
        name, _, digest = prompt.partition("@")
        return name == self.name and self.digest.startswith(digest.lower())


def read_prompt_text(data: bytes, path: str) -> PromptText:
    """Read the header of a prompt file; the server checks the rest.

    Raises:
        InvalidRequest: The file is too long, is not TOML in UTF-8, or lacks a name, a version or a metric.
    """
    if len(data) > MAX_PROMPT_BYTES:
        raise InvalidRequest(f"{path} has {len(data)} bytes: shorten the file to at most {MAX_PROMPT_BYTES}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is not UTF-8 (byte {error.start + 1}): save the file as UTF-8") from None
    head = _head(text)
    if isinstance(head, str):
        raise InvalidRequest(f"{path} {head}")
    metric, name = head
    return PromptText(metric, name, hashlib.sha256(data).hexdigest(), text)


@lru_cache(maxsize=64)
def short_prompt(prompt: str) -> str:
    """Return a prompt's short name for a label: the name, or NAME/VERSION@DIGEST for a prompt file's text."""
    if "\n" not in prompt:
        return prompt
    head = _head(prompt)
    name = "inline" if isinstance(head, str) else head[1]
    digest = hashlib.sha256(prompt.encode(errors="surrogatepass")).hexdigest()
    return with_digest(name, digest)


def _head(text: str) -> tuple[str, str] | str:
    if any(line.count(".") > MAX_DOTS_IN_LINE for line in text.split("\n")):
        return f"has more than {MAX_DOTS_IN_LINE} dots in a line: break the line"
    try:
        fields: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return f"is not TOML: {error}"
    for field, kind, example in (("metric", str, '"lave"'), ("name", str, '"mine"'), ("version", int, "1")):
        if not isinstance(fields.get(field), kind) or not fields[field]:
            line = f"{field} = {example}"
            return f"lacks its {field}: add the line {line} at the top (docs/reference/prompt-files.md)"
    return fields["metric"], f"{fields['name']}/{fields['version']}"
