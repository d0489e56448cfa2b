"""Rules that server and clients share but .proto files cannot express. This module uses only the standard library."""

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
"""Name of the service. gRPC health reports on judges under this name, but only if a judge is configured."""
MONITORING: Final = "gradewire.v1.Monitoring"

AUTHORIZATION_KEY: Final = "authorization"
REQUEST_ID_KEY: Final = "x-request-id"
"""Metadata: the request's ID, which comes from the caller or the server."""
PEER_KEY: Final = "x-gradewire-peer"
"""Metadata: host of the HTTP gateway's caller. The server trusts only its own gateway, on a private socket."""
ACCEPTED_KEY: Final = "gradewire-accepted"
"""Initial metadata of a call with many replies, sent once the server has accepted the call.

A client should wait for this key before it writes. If the server refuses a call during a write, grpc.aio reports
INTERNAL instead of the reason.
"""
PUSHBACK_KEY: Final = "grpc-retry-pushback-ms"
"""Trailing metadata: milliseconds to wait before a retry."""
PROCESS_KEY: Final = "gradewire-process"
"""Trailing metadata of a server with several processes: INDEX/COUNT, for the process that answered."""
STOPPING_KEY: Final = "gradewire-stopping"
"""Trailing metadata of a process that is stopping. Make later calls over new connections to other processes."""
QUOTA_KEY: Final = "gradewire-quota"
"""Trailing metadata of a call refused because of its tenant's quota. All processes share the quota."""

_BEARER: Final = "Bearer "

MAX_MARKS: Final = 30
"""Maximum number of combining marks in a row."""
_LONG_RUN: Final = "M" * (MAX_MARKS + 1)
# Match symbols from the first mark's code point on. These symbols include all marks. The look-behind lets a match start
# only at a run's first character. Without it, the search would try a run just below the limit from each character.
_SYMBOL: Final = r"[^\w\s\x00-\u02ff]"
_SYMBOLS: Final = re.compile(rf"{_SYMBOL}(?<!{_SYMBOL}{_SYMBOL}){_SYMBOL}{{{MAX_MARKS},}}")

MAX_PROMPT_BYTES: Final = 65_536
"""Maximum size of a prompt file."""
MAX_DOTS_IN_LINE: Final = 64
"""Maximum number of dots in a line of a prompt file. A TOML parser needs quadratic time for the dots in a key."""

NO_GRADER: Final = "none"
"""Value of the parameter `grader` for no grader, where the encoder's own fit has one."""
MAX_MODEL_BYTES: Final = 256
"""Maximum size of a model parameter: NAME, or NAME@DIGEST."""
MAX_FIT_BYTES: Final = 64
"""Maximum size of a fit's identity, which has 64 hex digits."""
_PAIR: Final = 2
_LIST_ORDERS: Final = 4
MAX_LISTED_ANSWERS: Final = 64
"""Maximum number of answers in a list that a judge puts in order."""
MAX_ID_BYTES: Final = 1024
"""Maximum size of Item.id."""
MAX_SPEC_BYTES: Final = 96 << 10
"""Maximum size of a MetricSpec, which may contain a prompt file."""

PARAMETER_BYTES: Final = {
    "model": MAX_MODEL_BYTES,
    "judge_model": MAX_MODEL_BYTES,
    "grader": MAX_MODEL_BYTES,
    "fit": MAX_FIT_BYTES,
    "prompt": MAX_PROMPT_BYTES,
}
"""Maximum size of string parameters in metrics and SyntheticGeneration, by field name."""

_EXACT_CHARACTERS: Final = 1 << 20

MAX_NAME_BYTES: Final = 256
"""Maximum size of a name in UTF-8."""
_DIGEST_BYTES: Final = 16
_PINNED: Final = re.compile(rf"(?P<name>.*)@(?P<digest>[0-9a-fA-F]{{8,{2 * _DIGEST_BYTES}}})", re.DOTALL)

DIGEST_PREFIX_CHARS: Final = 12
"""Number of a digest's hex digits in a metric identifier, enough to tell models and prompts apart."""
LINE: Final = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?::(?P<preset>\w+))?(?:/(?P<version>[0-9]+))?(?:\?(?P<parameters>.*))?", re.ASCII
)
FORMER_NAMES: Final = {"calibrated": "correctness"}
"""Current metric names by former names. Readers accept both names."""
_FORMER: Final = re.compile(rf"({'|'.join(FORMER_NAMES)})(?!\w)")
# Characters that a value keeps unescaped, to stay readable.
_SAFE: Final = {"prompt": "@/"}


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays before retries, each twice the previous delay and multiplied by a random factor within `spread`."""

    first_s: float
    longest_s: float
    spread: tuple[float, float] = (0.0, 1.0)

    def wait_s(self, failures: int, most_s: float = math.inf) -> float:
        """Return the seconds to wait after this many failures.

        The delay is limited to `most_s`, and then multiplied by the random factor.
        """
        plain_s = min(self.first_s * 2.0 ** min(failures - 1, 30), self.longest_s, most_s)
        return plain_s * random.uniform(*self.spread)  # noqa: S311 - only spreads load


def count_list_orders(answers: int) -> int:
    """Return the number of orders in which a judge sees a list of answers: 4, or 2 for two answers."""
    return _LIST_ORDERS if answers > _PAIR else _PAIR


def bearer(token: str) -> str:
    """Return the `authorization` header for a token."""
    return f"{_BEARER}{token}"


def token_of(authorization: str) -> str:
    """Return the token from an `authorization` header with "Bearer" in any letter case; "" for any other header."""
    scheme, token = authorization[: len(_BEARER)], authorization[len(_BEARER) :]
    return token if scheme.lower() == _BEARER.lower() else ""


class TooManyMarksError(ValueError):
    """Raised when a text has more than MAX_MARKS combining marks in a row."""

    def __init__(self) -> None:
        super().__init__(f"more than {MAX_MARKS} combining marks in a row")


def nfc(text: str) -> str:
    """Return the text in NFC; raise TooManyMarksError if it has too many combining marks in a row."""
    if text.isascii():
        return text
    if has_long_run(text):
        raise TooManyMarksError
    return normalize("NFC", text)


def has_long_run(text: str) -> bool:
    """Return True if the text has more than MAX_MARKS combining marks (Unicode categories M) in a row."""
    return not text.isascii() and any(
        _LONG_RUN in "".join([category(character)[0] for character in run.group()]) for run in _SYMBOLS.finditer(text)
    )


def byte_count(text: str) -> int:
    """Return a text's size in UTF-8 bytes, or the number of characters if this number already exceeds every limit."""
    exact = not text.isascii() and len(text) <= _EXACT_CHARACTERS
    return len(text.encode(errors="surrogatepass")) if exact else len(text)


class EntryTexts(Protocol):
    """The strings in a reference set's entry, which is a message or the server's own type."""

    @property
    def question(self) -> str:
        """The question."""

    @property
    def references(self) -> Sequence[str]:
        """Right answers."""

    @property
    def synthetic_answers(self) -> Sequence[str]:
        """One full sentence per reference, or an empty sequence."""


def name_set(entries: Iterable[EntryTexts], writer: Sequence[str] = ()) -> str:
    """Return a name of 32 hex digits, computed from the NFC texts of all entries in order and from `writer`.

    `writer` contains the digests of the judge that writes synthetic answers and of the judge's prompt.

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
    """Split NAME@DIGEST into the name and the lower-case digest. Return any other name with the digest ""."""
    if len(reference_set) > MAX_NAME_BYTES + 1 + 2 * _DIGEST_BYTES:
        return reference_set, ""  # do not search the text, which may have megabytes
    pinned = _PINNED.fullmatch(reference_set)
    return (reference_set, "") if pinned is None else (pinned["name"], pinned["digest"].lower())


def entry_payload(question: str, references: Sequence[str]) -> bytes:
    """Return a corpus entry in its stored format. Pass NFC texts, with distinct references in ascending order."""
    return json.dumps([question, *references], ensure_ascii=False).encode()


def entry_name(payload: bytes) -> bytes:
    """Return the 16-byte name of an entry, from its `entry_payload`."""
    return blake2b(payload, digest_size=_DIGEST_BYTES).digest()


def corpus_digest(names: Iterable[bytes]) -> str:
    """Return 32 hex digits computed from the names of a corpus's entries, ignoring order and repetition."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for name in sorted(set(names)):
        digest.update(name)
    return digest.hexdigest()


def digest_entries(entries: Iterable[EntryTexts]) -> str:
    """Return the `corpus_digest` of entries that are not normalised yet; raise the error of `nfc`."""
    return corpus_digest(
        entry_name(entry_payload(nfc(entry.question), sorted({nfc(text) for text in entry.references})))
        for entry in entries
    )


def current(text: str) -> str:
    """Replace a metric's former name with its current name at the start of a name, identifier, label or column."""
    found = _FORMER.match(text)
    return text if found is None else FORMER_NAMES[found[1]] + text[found.end() :]


def with_digest(name: str, digest: str) -> str:
    """Return NAME@DIGEST for a model or prompt, in the format of metric identifiers."""
    return f"{name}@{digest[:DIGEST_PREFIX_CHARS]}"


def join_line(name: str, values: Mapping[str, object], *, version: int | None = None) -> str:
    """Return a metric's identifier. Leave out an empty preset, and parameters that are None."""
    preset = f":{values['preset']}" if values.get("preset") else ""
    written = {key: _text(value) for key, value in values.items() if key != "preset" and value is not None}
    query = "&".join(f"{key}={quote(written[key], safe=_SAFE.get(key, '@'))}" for key in sorted(written))
    return f"{name}{preset}{'' if version is None else f'/{version}'}{'?' if query else ''}{query}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
