"""Looks up prompt files by name: those of this package, and further ones."""

import re
from collections.abc import Iterable
from copy import copy
from functools import lru_cache
from importlib.resources import files
from typing import Final

from gradewire_proto.conventions.prompt_files import MAX_PROMPT_BYTES
from gradewire_server.domain.quoting import quoted
from gradewire_server.metrics.judged.prompts.file import PromptFile
from gradewire_server.metrics.judged.prompts.reading import read_prompt
from gradewire_server.metrics.judged.prompts.table import PromptError

_NAMED: Final = re.compile(r"(?P<title>[a-z][a-z0-9_-]{0,63}/[0-9]{1,7})(?:@(?P<digest>[0-9a-fA-F]{8,64}))?")


class PromptLibrary:
    """Prompt files by NAME/VERSION. It never changes: `with_file` makes another one.

    Args:
        files: In the order in which `files` lists them.

    Raises:
        PromptError: Two different files have the same name and version.
    """

    def __init__(self, files: Iterable[PromptFile] = ()) -> None:
        self._files: dict[str, PromptFile] = {}
        for file in files:
            if self._files.setdefault(file.title, file).digest != file.digest:
                raise PromptError(
                    "version", f"another {file.title} is there already; give this one a version of its own"
                )

    def with_file(self, file: PromptFile) -> "PromptLibrary":
        """A library with this file too; raises PromptError where another one has its name and version."""
        return PromptLibrary((*self._files.values(), file))

    def files(self) -> tuple[PromptFile, ...]:
        """All of them, those of the package first."""
        return tuple(self._files.values())

    def find(self, metric: str, prompt: str) -> PromptFile:
        """The file that a `prompt` parameter means.

        Args:
            metric: Which it has to fit; "synthetic" for synthetic answers.
            prompt: "" for the metric's own, NAME/VERSION, NAME/VERSION@DIGEST (8 hex digits or more), or a whole file.

        Raises:
            PromptError: There is none of that name or digest, it belongs to another metric, or cannot be read.
        """
        match = _NAMED.fullmatch(prompt or _DEFAULTS[metric])
        file = _inline(prompt) if match is None else self._named(match["title"], (match["digest"] or "").lower())
        if file.metric != metric:
            raise PromptError("", f"{file.title} is a prompt of {file.metric}, not of {metric}")
        return file

    def _named(self, title: str, digest: str) -> PromptFile:
        file = self._files.get(title)
        if file is None:
            known = f"known: {', '.join(sorted(self._files))}"
            raise PromptError("", f"{title} is not known here; {_replacement(title) or known}")
        if not file.digest.startswith(digest):
            raise PromptError("", f"{title} has the digest {file.digest} here, {digest} is asked for")
        return file

    def parameter(self, file: PromptFile) -> str:
        """The `prompt` parameter that means exactly this file: NAME/VERSION@DIGEST if it is here, else its text."""
        known = self._files.get(file.title)
        return f"{file.title}@{file.digest}" if known is not None and known.digest == file.digest else file.text


_DEFAULTS: Final = {
    "lave": "lave/2",
    "judge_grade": "judge_grade/2",
    "judge_similarity": "judge_similarity/2",
    "judge_verdict": "judge_verdict/2",
    "compare": "compare/1",
    "synthetic": "synthetic/1",
}
"""Prompt of each metric that "" stands for."""


def _replacement(title: str) -> str:
    """Say which prompt of the package came after an earlier one of its name; "" where there is none."""
    name, _, version = title.partition("/")
    later = next((own for own in _DEFAULTS.values() if own.startswith(f"{name}/")), "")
    if not later or int(version) >= int(later.partition("/")[2]):
        return ""
    return f"{later} replaced it: ask for that, or give the text of the file"


def _inline(text: str) -> PromptFile:
    found = _read_once(text)
    if isinstance(found, PromptError):
        raise copy(found)  # each raised one keeps the frames that it went through
    return found


@lru_cache(maxsize=64)
def _read_once(text: str) -> PromptFile | PromptError:
    """Reading takes some 10 ms, and each call of a client brings the same text, right or wrong."""
    try:
        return _read_inline(text)
    except PromptError as error:
        return error.with_traceback(None)


def _read_inline(text: str) -> PromptFile:
    if len(text) > MAX_PROMPT_BYTES:
        raise PromptError("", f"has {len(text)} characters; a prompt file may have {MAX_PROMPT_BYTES} bytes")
    if "=" not in text:
        raise PromptError("", f"{quoted(text)} is neither NAME/VERSION[@DIGEST] nor the text of a prompt file")
    return read_prompt(text.encode(errors="surrogatepass"))  # which is no UTF-8, and is told so


def _of_package() -> PromptLibrary:
    entries = sorted(files(__package__).iterdir(), key=lambda entry: entry.name)
    return PromptLibrary(read_prompt(entry.read_bytes()) for entry in entries if entry.name.endswith(".toml"))


PACKAGE_PROMPTS: Final = _of_package()
"""The files that come with the server."""
