r"""The last `\boxed{…}` of a text, braces within it counted."""

import re

# The opening of a box, an escaped character (so `\{` is no brace), or a brace.
_TOKEN = re.compile(r"\\(?:boxed|fbox)\s{0,8}(\{)|\\(?:boxed|fbox) ([^\s{}$]{1,100})|\\.|[{}]", re.DOTALL)


def last_box(text: str) -> str | None:
    r"""What stands in the complete box that was opened last; None where there is none.

    `\fbox{…}` and `\boxed 5` count too. A box that is never closed does not.
    """
    opened: list[int] = []  # for each open brace where its box begins, -1 for a brace that opens none
    best: tuple[int, str] | None = None
    for token in _TOKEN.finditer(text):
        start = token.start()
        if token[1]:
            opened.append(token.end())
        elif token[2] is not None:
            best = _later(best, start, token[2])
        elif token[0] == "{":
            opened.append(-1)
        elif token[0] == "}" and opened and (content := opened.pop()) >= 0 and (best is None or content > best[0]):
            best = content, text[content:start]
    return best[1] if best else None


def _later(best: tuple[int, str] | None, start: int, content: str) -> tuple[int, str]:
    return best if best is not None and best[0] > start else (start, content)
