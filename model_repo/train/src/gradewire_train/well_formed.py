"""Whether a text is one that tokenizers read."""

import re

_HALF_PAIR = re.compile(r"[\ud800-\udfff]")


def well_formed(text: str) -> bool:
    """False where half a surrogate pair stands in it: JSON can write one, UTF-8 and tokenizers cannot."""
    return _HALF_PAIR.search(text) is None
