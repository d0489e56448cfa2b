"""Letters of choices, and the texts that they stand for."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_LETTER: Final = re.compile(r"\A\(?([A-Z])\)?[.:]?\Z")


def letter_place(text: str) -> int | None:
    """The place of the choice that a text names by its letter and nothing else: "B", "(B)", "B."; None without one."""
    found = _LETTER.match(text.strip())
    return ord(found[1]) - ord("A") if found else None


def choice_texts(offered: Sequence[str], choices: Any) -> list[str]:
    """What a model could choose, as texts: those of the document where only their letters were offered.

    Args:
        offered: What was offered.
        choices: The document's choices: texts, or an object with texts under "text".
    """
    texts = choices.get("text") if isinstance(choices, Mapping) else choices
    of_letters = [letter_place(text) for text in offered] == list(range(len(offered)))
    if of_letters and isinstance(texts, list) and len(texts) == len(offered):
        return list(map(str, texts))
    return list(offered)
