"""URLs as they may be shown and kept: without what opens their place to those who read them."""

import re
from typing import Final

# With one slash too, as a path that was made of a URL has it.
_URL: Final = re.compile(r"(?<=[A-Za-z0-9+.-]{2}):/\S+")
_KEYS: Final = re.compile(
    r"""
    (?P<begin>:/{1,2})(?:
        (?P<user>[^/?]+@)     # user and password end at the last @ before the path: a password may have one too
        | [^/]*@.*            # nobody knows whether this ? is of a password or begins a query: all of it goes
    )
    | (?P<query>\?)[^?]*=.*?(?=['")\]},;:.]*$)
    """,
    re.VERBOSE,
)
_BLANK: Final = re.compile(r"\s")
_NO_BLANK: Final = "\ue000"
"""Stands for a blank, where a URL would seem to end: a character that Unicode gives no meaning."""
# Of other URLs a ? may be a pattern's.
_WEB_QUERY: Final = re.compile(r"(https?://[^?]*)\?.*")


def redacted(text: str) -> str:
    """A URL, or a text with URLs, with `…` for user and password before a host, and for a query.

    A query may hold the signature of a signed URL. Twice gives the same as once.
    """
    return _URL.sub(lambda url: _KEYS.sub(_hidden, url[0]), text) if ":/" in text else text


def redacted_url(place: str) -> str:
    """As `without_keys`, of what is one URL, or a path, as a whole: keys that have blanks, or no =, are hidden too."""
    whole = _BLANK.sub(_NO_BLANK, place)
    return _WEB_QUERY.sub(r"\1?…", redacted(whole)).replace(_NO_BLANK, " ")


def _hidden(found: re.Match[str]) -> str:
    if found["query"]:
        return "?…"
    return f"{found['begin']}…{'@' if found['user'] else ''}"
