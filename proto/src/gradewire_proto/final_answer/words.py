"""The words of `words.toml`, as regular expressions that take one step per character."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final, TypeAlias

Trie: TypeAlias = "dict[str, Trie]"

# Scripts without blanks between words: a word may begin and end anywhere.
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_SPACED_WORD: Final = re.compile(rf"[^{_UNSPACED}]+")


@cache
def _languages() -> dict[str, dict[str, list[str]]]:
    text = files(__package__ or "").joinpath("words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def words(kind: str) -> tuple[str, ...]:
    """Return all words of a kind (a key of `words.toml`), without repeats, in the order of the file."""
    return tuple(dict.fromkeys(word for table in _languages().values() for word in table.get(kind, ())))


@cache
def pairs(kind: str) -> tuple[tuple[str, str], ...]:
    """Return all pairs of words of a kind whose values are pairs."""
    found: dict[tuple[str, str], None] = {}
    for table in _languages().values():
        for pair in table.get(kind, ()):
            found[pair[0], pair[1]] = None
    return tuple(found)


@cache
def any_of(*kinds: str) -> str:
    """Return a regular expression for any word of some kinds, the longest first, without capturing groups.

    Words of scripts with blanks match only as whole words. Compile it with `re.IGNORECASE`.
    """
    return expression(tuple(word for kind in kinds for word in words(kind)))


def expression(listed: Iterable[str], *, end: str = r"(?!\w)") -> str:
    """Return a regular expression for any of the listed words; see `any_of`.

    `end` is the regular expression for the end of a word of a script with blanks, after its last letter.
    """
    listed = tuple(listed)
    spaced = [word for word in listed if _SPACED_WORD.fullmatch(word)]
    unspaced = [word for word in listed if not _SPACED_WORD.fullmatch(word)]
    parts = []
    if spaced:
        # If all words have the same end, write it once behind them, because each copy takes time to compile.
        if all(word[-1].isalnum() for word in spaced):
            parts.append(rf"(?<!\w){_expression(_trie(spaced, ''))}{end}")
        else:
            parts.append(rf"(?<!\w){_expression(_trie(spaced, end))}")
    if unspaced:
        parts.append(_expression(_trie(unspaced, "")))
    return f"(?:{'|'.join(parts)})"


def _trie(listed: list[str], end: str) -> Trie:
    root: Trie = {}
    for word in listed:
        node = root
        for character in word.lower():
            node = node.setdefault(character, {})
        # Without this end, "no" would match the beginning of "not". After an apostrophe the next word begins at once.
        node[end if word[-1].isalnum() else ""] = {}
    return root


def _expression(node: Trie) -> str:
    branches = []
    ends = []
    for key, below in node.items():
        if not below:
            ends.append(key)
        else:
            branches.append(_character(key) + _expression(below))
    branches += ends
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


@cache
def _character(key: str) -> str:
    # Models write one or two blanks, or a line break, inside a phrase; and both kinds of apostrophes.
    return {" ": r"\s{1,2}", "'": "['’]"}.get(key, re.escape(key))
