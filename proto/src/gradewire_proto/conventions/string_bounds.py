"""How long the strings of a request may be, in bytes of UTF-8; types.proto says the same where they stand.

Texts of items are bounded together, by `Limits.max_item_bytes`; all others by what they are.
"""

from typing import Final

from gradewire_proto.conventions.prompt_files import MAX_PROMPT_BYTES

MAX_MODEL_BYTES: Final = 256
"""A model: NAME, or NAME@DIGEST."""
MAX_FIT_BYTES: Final = 64
"""The identity of a fit: 64 hex digits."""
MAX_ID_BYTES: Final = 1024
"""Item.id, which comes back beside every result of a stream."""
MAX_SPEC_BYTES: Final = 96 << 10
"""A metric with all its parameters: an inline prompt file, and room for fields of a later version."""

PARAMETER_BYTES: Final = {
    "model": MAX_MODEL_BYTES,
    "judge_model": MAX_MODEL_BYTES,
    "grader": MAX_MODEL_BYTES,
    "fit": MAX_FIT_BYTES,
    "prompt": MAX_PROMPT_BYTES,
}
"""String parameters of metrics, and of SyntheticGeneration, by the names of their fields."""


_EXACT_CHARACTERS: Final = 1 << 20


def byte_count(text: str) -> int:
    """Bytes of a text in UTF-8; of one of more than a million characters, which is over any bound, its characters."""
    exact = not text.isascii() and len(text) <= _EXACT_CHARACTERS
    return len(text.encode(errors="surrogatepass")) if exact else len(text)
