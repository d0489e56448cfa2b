"""Prompt files of judges as clients read them, and their names in metric lines."""

import hashlib
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gradewire.errors import InvalidRequest
from gradewire_proto.wire_rules import MAX_DOTS_IN_LINE, MAX_PROMPT_BYTES, with_digest


@dataclass(frozen=True, slots=True)
class PromptText:
    """A prompt file of a metric: its NAME/VERSION, its SHA-256 as 64 hex digits, and its whole text."""

    metric: str
    name: str
    digest: str
    text: str

    @property
    def pinned(self) -> str:
        """NAME/VERSION@DIGEST as metric lines have it."""
        return with_digest(self.name, self.digest)

    def is_named_by(self, prompt: str) -> bool:
        """Return True if NAME/VERSION or NAME/VERSION@DIGEST means this file."""
        name, _, digest = prompt.partition("@")
        return name == self.name and self.digest.startswith(digest.lower())


def read_prompt_text(data: bytes, path: str) -> PromptText:
    """Read what a client needs of a prompt file; whether it is a good one is for the server to say.

    Raises:
        InvalidRequest: It is too long, no UTF-8, no TOML, or does not say its name, version and metric.
    """
    if len(data) > MAX_PROMPT_BYTES:
        raise InvalidRequest(f"{path} has {len(data)} bytes: a prompt file has at most {MAX_PROMPT_BYTES}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is not UTF-8 (byte {error.start + 1}): a prompt file is TOML") from None
    head = _head(text)
    if isinstance(head, str):
        raise InvalidRequest(f"{path} {head}")
    metric, name = head
    return PromptText(metric, name, hashlib.sha256(data).hexdigest(), text)


@lru_cache(maxsize=64)
def short_prompt(prompt: str) -> str:
    """Return what stands for a prompt in a label: a name as it is, for a whole text NAME/VERSION@DIGEST."""
    if "\n" not in prompt:
        return prompt
    head = _head(prompt)
    name = "inline" if isinstance(head, str) else head[1]
    digest = hashlib.sha256(prompt.encode(errors="surrogatepass")).hexdigest()
    return with_digest(name, digest)


def _head(text: str) -> tuple[str, str] | str:
    """Metric and NAME/VERSION, or what is wrong."""
    if any(line.count(".") > MAX_DOTS_IN_LINE for line in text.split("\n")):
        return f"has more than {MAX_DOTS_IN_LINE} dots in a line: break it"
    try:
        fields: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return f"is not TOML: {error}"
    for field, kind, example in (("metric", str, '"lave"'), ("name", str, '"mine"'), ("version", int, "1")):
        if not isinstance(fields.get(field), kind) or not fields[field]:
            line = f"{field} = {example}"
            return f"does not say its {field}: write a line {line} at its top (docs/reference/prompt-files.md)"
    return fields["metric"], f"{fields['name']}/{fields['version']}"
