"""Find prompt files by name, digest or text."""

import re
from collections.abc import Iterable
from copy import copy
from functools import lru_cache
from importlib.resources import files
from typing import Final

from gradewire_proto.wire_rules import MAX_PROMPT_BYTES
from gradewire_server.domain.items import quoted
from gradewire_server.metrics.prompts.parsing import read_prompt
from gradewire_server.metrics.prompts.prompt_file import PromptFile
from gradewire_server.metrics.prompts.template import PromptError

_NAMED: Final = re.compile(r"(?P<title>[a-z][a-z0-9_-]{0,63}/[0-9]{1,7})(?:@(?P<digest>[0-9a-fA-F]{8,64}))?")

_MAX_FOUND: Final = 256


class PromptLibrary:
    """An immutable collection of prompt files by NAME/VERSION.

    Raises:
        PromptError: Two different files have the same name and version.
    """

    def __init__(self, files: Iterable[PromptFile] = ()) -> None:
        self._files: dict[str, PromptFile] = {}
        self._found: dict[tuple[str, str], PromptFile] = {}
        """Results of `find` for named files, which metrics look for with every item."""
        for file in files:
            if self._files.setdefault(file.title, file).digest != file.digest:
                raise PromptError("version", f"a different {file.title} already exists. Change this file's version")

    def with_file(self, file: PromptFile) -> "PromptLibrary":
        """Return a new library that includes this file.

        Raises:
            PromptError: A different file has the same name and version.
        """
        return PromptLibrary((*self._files.values(), file))

    def files(self) -> tuple[PromptFile, ...]:
        """Return all files, the package's files first."""
        return tuple(self._files.values())

    def find(self, metric: str, prompt: str) -> PromptFile:
        """Return the file that the `prompt` parameter selects for a metric, or for "synthetic" answers.

        The parameter is NAME/VERSION, NAME/VERSION@DIGEST (at least 8 hex digits), or the text of a file; "" means the
        metric's default file.

        Raises:
            PromptError: No file has this name or digest, the file is for a different metric, or the text cannot be
                parsed.
        """
        known = self._found.get((metric, prompt))
        if known is not None:
            return known
        match = _NAMED.fullmatch(prompt or _DEFAULTS[metric].title)
        file = _inline(prompt) if match is None else self._named(match["title"], (match["digest"] or "").lower())
        if file.metric != metric:
            raise PromptError("", f"{file.title} is a prompt for {file.metric}, not for {metric}")
        if match is not None and len(self._found) < _MAX_FOUND:
            self._found[metric, prompt] = file
        return file

    def _named(self, title: str, digest: str) -> PromptFile:
        file = self._files.get(title)
        if file is None:
            known = f"Known prompts: {', '.join(sorted(self._files))}"
            raise PromptError("", f"unknown prompt {title}. {_advice_on_newer_version(title) or known}")
        if not file.digest.startswith(digest):
            raise PromptError("", f"{title} has the digest {file.digest}, not {digest}")
        return file

    def parameter(self, file: PromptFile) -> str:
        """Return the `prompt` parameter for exactly this file: NAME/VERSION@DIGEST, or the file's text."""
        known = self._files.get(file.title)
        return f"{file.title}@{file.digest}" if known is not None and known.digest == file.digest else file.text


def _advice_on_newer_version(title: str) -> str:
    name, _, version = title.partition("/")
    own = next((file for file in PACKAGE_PROMPTS.files() if file.name == name), None)
    if own is None or int(version) >= own.version:
        return ""
    return f"{own.title} replaced this prompt. Use {own.title}, or send the file's text"


def _inline(text: str) -> PromptFile:
    found = _cached_prompt(text)
    if isinstance(found, PromptError):
        raise copy(found)  # raise a copy, since a raised error keeps its frames alive
    return found


@lru_cache(maxsize=64)
def _cached_prompt(text: str) -> PromptFile | PromptError:
    if len(text) > MAX_PROMPT_BYTES:
        return PromptError("", f"has {len(text)} characters; at most {MAX_PROMPT_BYTES} bytes are allowed")
    if "=" not in text:
        return PromptError("", f"{quoted(text)} is neither NAME/VERSION[@DIGEST] nor the text of a prompt file")
    try:
        return read_prompt(text.encode(errors="surrogatepass"))  # surrogates become invalid UTF-8, which is reported
    except PromptError as error:
        return error.with_traceback(None)


def _of_package() -> PromptLibrary:
    entries = sorted(files(__package__).iterdir(), key=lambda entry: entry.name)
    return PromptLibrary(read_prompt(entry.read_bytes()) for entry in entries if entry.name.endswith(".toml"))


PACKAGE_PROMPTS: Final = _of_package()
_DEFAULTS: Final = {file.metric: file for file in PACKAGE_PROMPTS.files() if file.name == file.metric}
