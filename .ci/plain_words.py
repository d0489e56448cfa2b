"""Check the words of docstrings, comments, messages, help and guides.

`make lint` runs it over every file that git knows; name files or folders to check only those. CONTRIBUTING.md has the
rules ("Words").
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
CODE: Final = ("client/", "server/", "model_repo/", "proto/", "benchmarks/", "deploy/", "examples/", ".ci/")
SETTINGS: Final = ("server/src/gradewire_server/settings", "server/src/gradewire_gateway/settings.py")
"""Modules whose attribute docstrings are the help of `gradewire serve`."""
HELP: Final = "client/src/gradewire_cli/"
HELP_KEYS: Final = frozenset({"help", "text", "about", "epilog", "meaning"})
"""Keys of texts in `HELP`. Other keys contain examples and data."""
GUIDES: Final = ("README.md", "docs/start", "docs/guides/")
THIS: Final = ".ci/plain_words.py"
"""This file, which holds the words that it looks for."""
MAX_WORDS: Final = 30
"""Words in one sentence of a guide or of an option's help."""

HEADLESS: Final = re.compile(r"(?:what|whether|who|whom|how|where|why|of|its?|as)\b", re.IGNORECASE)
"""First words after which a reader has to guess what the text is about."""
AVOIDED: Final = {
    r"told": "say reported, notified, or name who says it",
    r"anew": "say again",
    r"likewise": "say also",
    r"figures": "say metrics, statistics, charts or values",
    r"remarks?": "say note",
    r"metric'?s? lines?": "say metric identifier",
    r"people": "say annotators, or users",
    r"(?:is|are|was|were|be|been|being) away": "say down, or disconnected",
    r"reckon(?:s|ed|ing)?": "say estimate, count or calculate",
    r"in vain": "say without success",
    r"for want of": "say because there is no",
    r"asked for": "say requested",
    r"there is none": "name what is missing",
}
AVOIDED_WORDS: Final = re.compile(rf"\b(?:{'|'.join(AVOIDED)})\b", re.IGNORECASE)
NESTED: Final = re.compile(r"\b(?:which|who|whom|whose)\b[^.;:()]*\b(?:which|who|whom|whose)\b", re.IGNORECASE)
SENTENCE_END: Final = re.compile(r"(?<=[.!?:;])[*)\"]*\s+")
POINT: Final = re.compile(r"^(?:[-*]|\d+\.) ")
"""The mark before a point of a list."""
NAMES: Final = re.compile(r"``.*?``|`.*?`|\]\([^)]*\)|\\input\{\w+\}|^ +\w+:", re.DOTALL | re.MULTILINE)
"""Code, addresses, and names of arguments, which may have any words."""
EXAMPLES: Final = re.compile(r"\x08.*?(?:\n\s*\n|$)", re.DOTALL)
"""Paragraphs that click shows as they are, such as commands."""
DATA: Final = ("client/src/gradewire_cli/bench/ave_descriptions.py", "server/src/gradewire_server/encoders/local.py")
"""Files whose messages are data: texts to grade, and texts that measure an error."""


class Text(NamedTuple):
    """A text that somebody reads, with the number of its first line."""

    line: int
    kind: str
    text: str


def texts_of_python(source: str, docstring: str = "docstring") -> Iterator[Text]:
    """Yield docstrings (with their kind), help of options, messages and comments of a module."""
    tree = ast.parse(source)
    seen: set[int] = set()
    for node in ast.walk(tree):  # outer nodes come before inner ones
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield from _text(node.value, docstring, seen)
        elif isinstance(node, ast.keyword) and node.arg in {"help", "short_help", "epilog", "description"}:
            yield from _text(node.value, "help", seen)
        elif isinstance(node, ast.FunctionDef) and any(map(_makes_command, node.decorator_list)):
            yield from _text(node.body[0], "help", seen)
        elif isinstance(node, ast.JoinedStr | ast.Constant):
            yield from (text for text in _text(node, "message", seen) if text.text.count(" ") > 1)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    yield from _joined(
        (token.start[0], not token.line[: token.start[1]].strip(), token.string.lstrip("#")) for token in comments
    )


def _text(node: ast.AST, kind: str, seen: set[int]) -> Iterator[Text]:
    """Yield all strings in a node that were not seen before as one text."""
    parts = [part for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    text = "".join(str(part.value) for part in parts if id(part) not in seen)
    seen.update(map(id, parts))
    if text:
        yield Text(parts[0].lineno, kind, text)


def _makes_command(decorator: ast.expr) -> bool:
    called = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
    return called.rpartition(".")[2] in {"command", "group"}


def texts_of_help(source: str) -> Iterator[Text]:
    """Yield the texts of a TOML file with help of commands and options, without examples."""
    lines = source.splitlines()
    for path, text in _strings(tomllib.loads(source)):
        if path[-1] in HELP_KEYS:
            first = next((line for line in text.splitlines() if line.strip(" \b")), "")
            number = next((number for number, line in enumerate(lines, 1) if first in line), 1)
            yield Text(number, "help", text)


def _strings(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _strings(inner, (*path, key))


def texts_of_proto(source: str) -> Iterator[Text]:
    """Yield the comments of a proto file."""
    lines = [(number, *line.partition("//")) for number, line in enumerate(source.splitlines(), 1)]
    yield from _joined((number, not code.strip(), comment) for number, code, mark, comment in lines if mark)


def _joined(comments: Iterable[tuple[int, bool, str]]) -> Iterator[Text]:
    """Yield comments of a line each (number, True if there is no code before, text), those of a block as one."""
    begun: Text | None = None
    next_line = 0
    for line, is_alone, text in comments:
        if begun is not None and is_alone and line == next_line:
            begun = begun._replace(text=f"{begun.text} {text.strip()}")
        else:
            if begun is not None:
                yield begun
            begun = Text(line, "comment", text.strip())
        next_line = line + 1
    if begun is not None:
        yield begun


def texts_of_page(source: str) -> Iterator[Text]:
    """Yield the paragraphs and points of a page; tables, code and headings are left out."""
    lines: list[str] = []
    first, in_code = 1, False
    for number, line in enumerate([*source.splitlines(), ""], 1):
        plain = line.strip()
        is_fence = plain.startswith("```")
        is_text = not in_code and not is_fence and plain != "" and plain[0] not in "|#<"
        if lines and (not is_text or POINT.match(plain)):
            yield Text(first, "page", " ".join(lines))
            lines = []
        if is_text:
            first = first if lines else number
            lines.append(POINT.sub("", plain, count=1))
        in_code ^= is_fence
    if lines:
        yield Text(first, "page", " ".join(lines))


def findings_of(text: Text) -> Iterator[str]:
    """Yield what is wrong with a text."""
    plain = text.text.strip()
    if text.kind in {"docstring", "comment", "help"} and (found := HEADLESS.match(plain)):
        yield f"a {text.kind} begins with {found[0]!r}: begin with a verb or a noun"
    for found in AVOIDED_WORDS.finditer(" ".join(NAMES.sub("", text.text).split())):
        hint = next(hint for word, hint in AVOIDED.items() if re.fullmatch(word, found[0], re.IGNORECASE))
        yield f"{found[0]!r} in a {text.kind}: {hint}"
    for sentence in SENTENCE_END.split(EXAMPLES.sub("", plain)) if text.kind in {"page", "help"} else ():
        beginning = " ".join(sentence.split()[:6])
        if (words := len(sentence.split())) > MAX_WORDS:
            yield f"a sentence of {words} words, at most {MAX_WORDS}: make it two ({beginning} …)"
        if NESTED.search(sentence):
            yield f"a relative clause in another one: make it two sentences ({beginning} …)"


def texts_of(path: str) -> Iterator[Text]:
    """Yield the texts of a file that are checked."""
    source = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".py"):
        texts = texts_of_python(source, "help" if path.startswith(SETTINGS) else "docstring")
        yield from (text for text in texts if path not in DATA or text.kind != "message")
    elif path.endswith(".proto"):
        yield from texts_of_proto(source)
    elif path.endswith(".toml"):
        yield from texts_of_help(source)
    else:
        yield from texts_of_page(source)


def main() -> int:
    """Check the files and return the exit status."""
    listed = subprocess.run(["git", "ls-files", *sys.argv[1:]], cwd=ROOT, check=True, capture_output=True, text=True)
    paths = [
        path
        for path in listed.stdout.splitlines()
        if (path.startswith(CODE) and path.endswith((".py", ".proto")) and "_pb2" not in path and path != THIS)
        or (path.startswith(GUIDES) and path.endswith(".md"))
        or (path.startswith(HELP) and path.endswith(".toml"))
    ]
    found = [f"{path}:{text.line}: {what}\n" for path in paths for text in texts_of(path) for what in findings_of(text)]
    sys.stdout.writelines(found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
