"""The commands that pages show in fenced blocks: `gradewire …`, `make …`, `python -m benchmarks…`."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"),
        ROOT / "examples/README.md",
        *ROOT.glob("model_repo/train/*.md"),
        *(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "adr"),
    ]
)
_SHELLS = {"", "sh", "console"}
_COMMAND = re.compile(
    r"^(?:\$ )?(?:(?P<taken>[A-Z]+)=\$\((?P<inner>[^)]*)\)|(?P<plain>.*))(?P<comment>\s+#.*)?$", re.DOTALL
)
_ASSIGNED = re.compile(r"[A-Z_]+=.*")
# What ends a command or sends its output elsewhere.
_ENDS = {"|", "||", "&", "&&", ";", ">", ">>", "<"}
_PROGRAMS = (("gradewire",), ("make",), ("python", "-m"), ("python3", "-m"), (".venv/bin/python", "-m"))


@dataclass(frozen=True, slots=True)
class Documented:
    """A command that a page shows.

    Attributes:
        words: Program and arguments; without `python -m` where it is a module.
        taken: The shell variable that takes its output; "" where none does.
        target: The file that takes its output; "" where none does.
    """

    page: Path
    line: int
    words: tuple[str, ...]
    taken: str = ""
    target: str = ""

    @property
    def text(self) -> str:
        """As one would write it."""
        return shlex.join(self.words)

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}: {self.text}"


def documented_in(page: Path) -> Iterator[Documented]:
    """The commands of a page in their order; lines that end in a backslash go on."""
    language: str | None = None
    begun, number_begun = "", 0
    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        if line.lstrip().startswith("```"):
            language = line.strip().removeprefix("```") if language is None else None
        elif language in _SHELLS:
            number_begun = number_begun if begun else number
            begun += line.strip()
            if begun.endswith("\\"):
                begun = begun[:-1] + " "
                continue
            found = _read(page, number_begun, begun)
            begun = ""
            if found is not None:
                yield found


def _read(page: Path, line: int, text: str) -> Documented | None:
    match = _COMMAND.match(text)
    assert match is not None, text
    shell = shlex.shlex(match["inner"] or match["plain"] or "", posix=True, punctuation_chars="();<>|&")
    shell.whitespace_split = True
    try:
        words = list(shell)
    except ValueError:
        return None  # prose, or a table that somebody printed
    end = next((place for place, word in enumerate(words) if word in _ENDS), len(words))
    target = words[end + 1] if words[end : end + 1] == [">"] else ""
    words = words[:end]
    while words and _ASSIGNED.fullmatch(words[0]):
        words.pop(0)
    for program in _PROGRAMS:
        if tuple(words[: len(program)]) == program:
            rest = words[len(program) :] if program[-1] == "-m" else words
            # "…" stands for what the reader fills in.
            if rest[0] in {"gradewire", "make"} or rest[0].startswith("benchmarks."):
                return Documented(page, line, tuple(word for word in rest if word != "…"), match["taken"] or "", target)
    return None


COMMANDS = [command for page in PAGES for command in documented_in(page)]
