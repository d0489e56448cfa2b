"""Rules that server and clients share and the .proto files cannot express; standard library only."""

import json
import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Protocol
from unicodedata import category, normalize
from urllib.parse import quote

SCORING: Final = "gradewire.v1.Scoring"
REFERENCES: Final = "gradewire.v1.References"
MODELS: Final = "gradewire.v1.Models"
JUDGING: Final = "gradewire.v1.Judging"
"""Health says of it whether judges can be had, for metrics and comparisons; unknown there where none is configured."""
MONITORING: Final = "gradewire.v1.Monitoring"

AUTHORIZATION_KEY: Final = "authorization"
REQUEST_ID_KEY: Final = "x-request-id"
"""Id of the request, given by the caller or made by the server; it stands in the server's log."""
PEER_KEY: Final = "x-gradewire-peer"
"""Host that asks the HTTP gateway; believed of the server's own gateway alone, which calls over a private socket."""
PUSHBACK_KEY: Final = "grpc-retry-pushback-ms"
"""Trailing metadata that gRPC clients with a retry policy obey: wait so long, then try again."""
PROCESS_KEY: Final = "gradewire-process"
"""Trailing metadata of a server with several processes: INDEX/COUNT of the one that answered."""
STOPPING_KEY: Final = "gradewire-stopping"
"""Trailing metadata of such a process that stops: further calls are to go over new connections, which reach others."""
QUOTA_KEY: Final = "gradewire-quota"
"""Trailing metadata of a call that was refused for its tenant's quota, which is one for all processes."""

_BEARER: Final = "Bearer "

MAX_MARKS: Final = 30
"""Combining marks in a row; no language needs more than a few."""
_LONG_RUN: Final = "M" * (MAX_MARKS + 1)
# Neither letter nor space and from where the marks begin: they are all in it. The look-behind starts a run at its first
# character only, so that runs just below the bound are not tried again from each of their characters.
_SYMBOL: Final = r"[^\w\s\x00-\u02ff]"
_SYMBOLS: Final = re.compile(rf"{_SYMBOL}(?<!{_SYMBOL}{_SYMBOL}){_SYMBOL}{{{MAX_MARKS},}}")

MAX_PROMPT_BYTES: Final = 65_536
"""Longest prompt file."""
MAX_DOTS_IN_LINE: Final = 64
"""A TOML parser's work grows with the square of a dotted key's parts: half a minute for one that fills the file."""

MAX_MODEL_BYTES: Final = 256
"""A model: NAME, or NAME@DIGEST."""
MAX_FIT_BYTES: Final = 64
"""The identity of a fit: 64 hex digits."""
MAX_ID_BYTES: Final = 1024
"""Item.id, which comes back beside every result of a stream."""
MAX_SPEC_BYTES: Final = 96 << 10
"""A metric with all its parameters: an inline prompt file, and room for fields of a later version."""

PARAMETER_BYTES: Final = {
    "model": MAX_MODEL_BYTES,
    "judge_model": MAX_MODEL_BYTES,
    "grader": MAX_MODEL_BYTES,
    "fit": MAX_FIT_BYTES,
    "prompt": MAX_PROMPT_BYTES,
}
"""String parameters of metrics, and of SyntheticGeneration, by the names of their fields."""

_EXACT_CHARACTERS: Final = 1 << 20

MAX_NAME_BYTES: Final = 256
"""A name in UTF-8; it becomes part of a key."""
_DIGEST_BYTES: Final = 16
_PINNED: Final = re.compile(rf"(?P<name>.*)@(?P<digest>[0-9a-fA-F]{{8,{2 * _DIGEST_BYTES}}})", re.DOTALL)

DIGEST_PREFIX_CHARS: Final = 12
"""Hex digits of a digest in a line: enough to tell models and prompts apart, short enough to read."""
LINE: Final = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?::(?P<preset>\w+))?(?:/(?P<version>[0-9]+))?(?:\?(?P<parameters>.*))?", re.ASCII
)
FORMER_NAMES: Final = {"calibrated": "correctness"}
"""Names that metrics had, and the names they have: what carries an old one is read as if it had the new one."""
_FORMER: Final = re.compile(rf"({'|'.join(FORMER_NAMES)})(?!\w)")
# What stays readable in a value.
_SAFE: Final = {"prompt": "@/"}


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between tries, each twice as long as the one before.

    Attributes:
        first_s: The first wait.
        longest_s: The longest one.
        spread: Least and largest factor of a wait, drawn each time: those who failed together do not come back
            together.
    """

    first_s: float
    longest_s: float
    spread: tuple[float, float] = (0.0, 1.0)

    def wait_s(self, failures: int, most_s: float = math.inf) -> float:
        """Return the seconds to wait after so many failures; `most_s` bounds them before they are spread."""
        plain_s = min(self.first_s * 2.0 ** min(failures - 1, 30), self.longest_s, most_s)
        return plain_s * random.uniform(*self.spread)  # noqa: S311 - spreads load, hides nothing


def bearer(token: str) -> str:
    """Return the value of `authorization` for a token."""
    return f"{_BEARER}{token}"


def token_of(authorization: str) -> str:
    """Return the token of a value of `authorization`; empty if it is no bearer token, whose scheme has any case."""
    scheme, token = authorization[: len(_BEARER)], authorization[len(_BEARER) :]
    return token if scheme.lower() == _BEARER.lower() else ""


class TooManyMarksError(ValueError):
    """A text has more than MAX_MARKS combining marks in a row."""

    def __init__(self) -> None:
        super().__init__(f"more than {MAX_MARKS} combining marks in a row")


def nfc(text: str) -> str:
    """Return the text in NFC (plain ASCII passes at once); raises TooManyMarksError."""
    if text.isascii():
        return text
    if has_long_run(text):
        raise TooManyMarksError
    return normalize("NFC", text)


def has_long_run(text: str) -> bool:
    """Return True if more than MAX_MARKS characters of Unicode's categories M stand in a row."""
    return not text.isascii() and any(
        _LONG_RUN in "".join([category(character)[0] for character in run.group()]) for run in _SYMBOLS.finditer(text)
    )


def byte_count(text: str) -> int:
    """Return the size of a text in UTF-8; of more than a million characters, which is over any bound, their number."""
    exact = not text.isascii() and len(text) <= _EXACT_CHARACTERS
    return len(text.encode(errors="surrogatepass")) if exact else len(text)


class EntryTexts(Protocol):
    """An entry of a set, as far as its name goes: the message, or the server's own form of it."""

    @property
    def question(self) -> str:
        """The question."""

    @property
    def references(self) -> Sequence[str]:
        """Right answers."""

    @property
    def synthetic_answers(self) -> Sequence[str]:
        """Each reference written out as a sentence; or empty."""


def name_set(entries: Iterable[EntryTexts], writer: Sequence[str] = ()) -> str:
    """Return 32 hex digits over the texts of all entries in NFC, in their order, and the writer of synthetic answers.

    A writer is the digests of a judge and its prompt; another one makes another set.

    Raises:
        TooManyMarksError: A text has more combining marks in a row than the server takes.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    groups = (texts for entry in entries for texts in ((entry.question,), entry.references, entry.synthetic_answers))
    for texts in (*groups, *(((), writer) if writer else ())):
        digest.update(len(texts).to_bytes(8, "big"))
        for text in texts:
            data = nfc(text).encode()
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def split_pin(reference_set: str) -> tuple[str, str]:
    """Return name and digest, in lower case, of NAME@DIGEST; of any other name, or a too long one, itself and ""."""
    if len(reference_set) > MAX_NAME_BYTES + 1 + 2 * _DIGEST_BYTES:
        return reference_set, ""  # of megabytes, perhaps, which are not searched
    pinned = _PINNED.fullmatch(reference_set)
    return (reference_set, "") if pinned is None else (pinned["name"], pinned["digest"].lower())


def entry_payload(question: str, references: Sequence[str]) -> bytes:
    """Return an entry of a corpus as it is kept and named: distinct references in order, all texts in NFC."""
    return json.dumps([question, *references], ensure_ascii=False).encode()


def entry_name(payload: bytes) -> bytes:
    """16 bytes that name an entry by its `entry_payload`."""
    return blake2b(payload, digest_size=_DIGEST_BYTES).digest()


def corpus_digest(names: Iterable[bytes]) -> str:
    """32 hex digits over the names of a corpus' entries, whatever their order and however often one is named."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for name in sorted(set(names)):
        digest.update(name)
    return digest.hexdigest()


def digest_entries(entries: Iterable[EntryTexts]) -> str:
    """Return the `corpus_digest` of entries as they are sent; raises TooManyMarksError as `name_set`."""
    return corpus_digest(
        entry_name(entry_payload(nfc(entry.question), sorted({nfc(text) for text in entry.references})))
        for entry in entries
    )


def current(text: str) -> str:
    """Return the name, line, label or column of a metric with the name that the metric has now in front."""
    found = _FORMER.match(text)
    return text if found is None else FORMER_NAMES[found[1]] + text[found.end() :]


def with_digest(name: str, digest: str) -> str:
    """Return the name of a model or a prompt in a line."""
    return f"{name}@{digest[:DIGEST_PREFIX_CHARS]}"


def join_line(name: str, values: Mapping[str, object], *, version: int | None = None) -> str:
    """Return the line of a metric with preset and parameters by name; None is left out, and so is an empty preset."""
    preset = f":{values['preset']}" if values.get("preset") else ""
    written = {key: _text(value) for key, value in values.items() if key != "preset" and value is not None}
    query = "&".join(f"{key}={quote(written[key], safe=_SAFE.get(key, '@'))}" for key in sorted(written))
    return f"{name}{preset}{'' if version is None else f'/{version}'}{'?' if query else ''}{query}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
