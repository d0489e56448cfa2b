"""Rules that server and clients share and the .proto files cannot express. Uses only the standard library."""

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
"""Also the health service's name for judges, of metrics and comparisons; unknown there if none is configured."""
MONITORING: Final = "gradewire.v1.Monitoring"

AUTHORIZATION_KEY: Final = "authorization"
REQUEST_ID_KEY: Final = "x-request-id"
"""Id of the request, from the caller or made by the server. The server logs it."""
PEER_KEY: Final = "x-gradewire-peer"
"""Host of the HTTP gateway's caller. The server trusts it only from its own gateway, which uses a private socket."""
ACCEPTED_KEY: Final = "gradewire-accepted"
"""Initial metadata of a call with many replies that the server has accepted; a refused call ends without it.

A client that writes its messages after this key gets the reason for a refusal: grpc.aio reports INTERNAL instead if a
call ends during a write.
"""
PUSHBACK_KEY: Final = "grpc-retry-pushback-ms"
"""Trailing metadata: milliseconds to wait before a retry. gRPC clients with a retry policy obey it."""
PROCESS_KEY: Final = "gradewire-process"
"""Trailing metadata of a server with several processes: INDEX/COUNT of the one that answered."""
STOPPING_KEY: Final = "gradewire-stopping"
"""Trailing metadata of a process that stops: make further calls over new connections, which reach other processes."""
QUOTA_KEY: Final = "gradewire-quota"
"""Trailing metadata of a call refused because of its tenant's quota, which all processes share."""

_BEARER: Final = "Bearer "

MAX_MARKS: Final = 30
"""Maximum number of combining marks in a row; no language needs more than a few."""
_LONG_RUN: Final = "M" * (MAX_MARKS + 1)
# Symbols from the code point of the first marks on: all marks are among them. The look-behind lets a run start only at
# its first character, so that runs just below the limit are not tried again from each of their characters.
_SYMBOL: Final = r"[^\w\s\x00-\u02ff]"
_SYMBOLS: Final = re.compile(rf"{_SYMBOL}(?<!{_SYMBOL}{_SYMBOL}){_SYMBOL}{{{MAX_MARKS},}}")

MAX_PROMPT_BYTES: Final = 65_536
"""Longest prompt file."""
MAX_DOTS_IN_LINE: Final = 64
"""A TOML parser's time grows with the square of a key's dots: half a minute for one key that fills the file."""

MAX_MODEL_BYTES: Final = 256
"""A model: NAME, or NAME@DIGEST."""
MAX_FIT_BYTES: Final = 64
"""The identity of a fit: 64 hex digits."""
MAX_ID_BYTES: Final = 1024
"""Item.id. Streams return it with every result."""
MAX_SPEC_BYTES: Final = 96 << 10
"""A metric with all its parameters: enough for an inline prompt file and fields of later versions."""

PARAMETER_BYTES: Final = {
    "model": MAX_MODEL_BYTES,
    "judge_model": MAX_MODEL_BYTES,
    "grader": MAX_MODEL_BYTES,
    "fit": MAX_FIT_BYTES,
    "prompt": MAX_PROMPT_BYTES,
}
"""Maximum size of string parameters of metrics and of SyntheticGeneration, by field name."""

_EXACT_CHARACTERS: Final = 1 << 20

MAX_NAME_BYTES: Final = 256
"""A name in UTF-8, as a part of a key."""
_DIGEST_BYTES: Final = 16
_PINNED: Final = re.compile(rf"(?P<name>.*)@(?P<digest>[0-9a-fA-F]{{8,{2 * _DIGEST_BYTES}}})", re.DOTALL)

DIGEST_PREFIX_CHARS: Final = 12
"""Hex digits of a digest in a metric identifier: enough to tell models and prompts apart, but short."""
LINE: Final = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?::(?P<preset>\w+))?(?:/(?P<version>[0-9]+))?(?:\?(?P<parameters>.*))?", re.ASCII
)
FORMER_NAMES: Final = {"calibrated": "correctness"}
"""Current names of metrics by their former names. Readers accept both."""
_FORMER: Final = re.compile(rf"({'|'.join(FORMER_NAMES)})(?!\w)")
# Characters that a value keeps unescaped, to stay readable.
_SAFE: Final = {"prompt": "@/"}


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays before retries, each twice as long as the one before.

    Attributes:
        first_s: The first delay.
        longest_s: The longest delay.
        spread: Smallest and largest random factor of a delay, so that callers that failed together do not return
            together.
    """

    first_s: float
    longest_s: float
    spread: tuple[float, float] = (0.0, 1.0)

    def wait_s(self, failures: int, most_s: float = math.inf) -> float:
        """Return the seconds to wait after a number of failures, at most `most_s` before the random factor."""
        plain_s = min(self.first_s * 2.0 ** min(failures - 1, 30), self.longest_s, most_s)
        return plain_s * random.uniform(*self.spread)  # noqa: S311 - spreads load, hides nothing


def bearer(token: str) -> str:
    """Return the value of `authorization` for a token."""
    return f"{_BEARER}{token}"


def token_of(authorization: str) -> str:
    """Return the bearer token in a value of `authorization`, with the scheme in any case; "" without one."""
    scheme, token = authorization[: len(_BEARER)], authorization[len(_BEARER) :]
    return token if scheme.lower() == _BEARER.lower() else ""


class TooManyMarksError(ValueError):
    """A text has more than MAX_MARKS combining marks in a row."""

    def __init__(self) -> None:
        super().__init__(f"more than {MAX_MARKS} combining marks in a row")


def nfc(text: str) -> str:
    """Return the text in NFC. ASCII is returned at once; raises TooManyMarksError."""
    if text.isascii():
        return text
    if has_long_run(text):
        raise TooManyMarksError
    return normalize("NFC", text)


def has_long_run(text: str) -> bool:
    """Return True if more than MAX_MARKS combining marks (Unicode's categories M) stand in a row."""
    return not text.isascii() and any(
        _LONG_RUN in "".join([category(character)[0] for character in run.group()]) for run in _SYMBOLS.finditer(text)
    )


def byte_count(text: str) -> int:
    """Return the size of a text in UTF-8; for more than a million characters, which exceeds any limit, their number."""
    exact = not text.isascii() and len(text) <= _EXACT_CHARACTERS
    return len(text.encode(errors="surrogatepass")) if exact else len(text)


class EntryTexts(Protocol):
    """The texts of an entry of a reference set, from the message or the server's own type."""

    @property
    def question(self) -> str:
        """The question."""

    @property
    def references(self) -> Sequence[str]:
        """Right answers."""

    @property
    def synthetic_answers(self) -> Sequence[str]:
        """Each reference as a full sentence; or empty."""


def name_set(entries: Iterable[EntryTexts], writer: Sequence[str] = ()) -> str:
    """Return 32 hex digits over the NFC texts of all entries in order, and over the writer of synthetic answers.

    A writer consists of the digests of a judge and its prompt; another writer makes another set.

    Raises:
        TooManyMarksError: A text has too many combining marks in a row.
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
    """Split NAME@DIGEST into name and lower-case digest. Return any other or too long text unchanged, with ""."""
    if len(reference_set) > MAX_NAME_BYTES + 1 + 2 * _DIGEST_BYTES:
        return reference_set, ""  # do not search what may be megabytes
    pinned = _PINNED.fullmatch(reference_set)
    return (reference_set, "") if pinned is None else (pinned["name"], pinned["digest"].lower())


def entry_payload(question: str, references: Sequence[str]) -> bytes:
    """Return the stored form of a corpus entry, from its distinct references in order, with all texts in NFC."""
    return json.dumps([question, *references], ensure_ascii=False).encode()


def entry_name(payload: bytes) -> bytes:
    """Return 16 bytes that name an entry by its `entry_payload`."""
    return blake2b(payload, digest_size=_DIGEST_BYTES).digest()


def corpus_digest(names: Iterable[bytes]) -> str:
    """Return 32 hex digits over the names of a corpus' entries, ignoring order and repetition."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for name in sorted(set(names)):
        digest.update(name)
    return digest.hexdigest()


def digest_entries(entries: Iterable[EntryTexts]) -> str:
    """Return the `corpus_digest` of entries as sent; raises TooManyMarksError."""
    return corpus_digest(
        entry_name(entry_payload(nfc(entry.question), sorted({nfc(text) for text in entry.references})))
        for entry in entries
    )


def current(text: str) -> str:
    """Replace a metric's former name at the start of a name, identifier, label or column by its current one."""
    found = _FORMER.match(text)
    return text if found is None else FORMER_NAMES[found[1]] + text[found.end() :]


def with_digest(name: str, digest: str) -> str:
    """Return NAME@DIGEST of a model or prompt, as written in a metric identifier."""
    return f"{name}@{digest[:DIGEST_PREFIX_CHARS]}"


def join_line(name: str, values: Mapping[str, object], *, version: int | None = None) -> str:
    """Return a metric's identifier with preset and parameters by name, without values of None and an empty preset."""
    preset = f":{values['preset']}" if values.get("preset") else ""
    written = {key: _text(value) for key, value in values.items() if key != "preset" and value is not None}
    query = "&".join(f"{key}={quote(written[key], safe=_SAFE.get(key, '@'))}" for key in sorted(written))
    return f"{name}{preset}{'' if version is None else f'/{version}'}{'?' if query else ''}{query}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
