"""What follows the last phrase that announces an answer."""

import re

# Blanks are single when it is searched, so no two repeats of it can share characters.
_PHRASE = re.compile(
    r"\b(?:final |correct )?answer[*_]{0,3} ?(?:is ?:?|:|=) ?[*_]{0,3}|答案[*_]{0,3}[是为:\uff1a][:\uff1a]?|^#### ?",
    re.IGNORECASE | re.MULTILINE,
)
_BLANKS = re.compile(r"[ \t\u00a0]+")
_CLOSING_WORDS = "i hope it is correct"


def last_phrase(text: str) -> str | None:
    """What follows the last "the answer is", "Answer:", "Final answer:" or "####", to the end of its line.

    Where the line ends with the phrase, the next line that is not blank is taken. None: there is no such phrase, or
    nothing follows it.
    """
    plain = _BLANKS.sub(" ", text)
    end = max((phrase.end() for phrase in _PHRASE.finditer(plain)), default=-1)
    if end < 0:
        return None
    line = plain[end:].lstrip().partition("\n")[0].strip()
    if line.rstrip(".").casefold().endswith(_CLOSING_WORDS):
        line = line.rstrip(".")[: -len(_CLOSING_WORDS)].strip()
    if line.endswith("**") and line.count("**") == 1:  # emphasis that began before the phrase
        line = line[:-2].strip()
    return line or None
