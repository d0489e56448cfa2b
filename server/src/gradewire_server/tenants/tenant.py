"""Read tenants from a tokens file (TOML). Errors never contain a token."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from gradewire_server.domain.caller import Scope

NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""The pattern for names of tenants and namespaces. It excludes colons, which separate the parts of cache keys."""
USUAL_SCOPES: Final = frozenset({Scope.SCORE, Scope.PREPARE, Scope.JUDGE})
"""The default scopes: all scopes that reveal nothing about other tenants."""

MAX_FILE_BYTES: Final = 4 << 20
MAX_WEIGHT: Final = 1000.0
MAX_QUOTA_TOKENS_PER_MINUTE: Final = 10**12
_TOKEN: Final = re.compile(r"[!-~]{1,1024}")
"""Printable ASCII without spaces, to fit in a header."""
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")
_KEYS: Final = ("namespace", "token", "token_sha256", "scopes", "weight", "quota_tokens_per_minute")
_EMPTY_SHA256: Final = sha256(b"").digest()


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant.

    Attributes:
        namespace: The namespace for stored data. Several tenants may share a namespace.
        token_sha256: The SHA-256 digests of one or more tokens, 32 bytes each.
        scopes: One or more scopes.
        weight: The tenant's share of turns relative to other callers, above 0.
        quota_tokens_per_minute: The maximum number of text tokens per minute, or None for no limit.
    """

    name: str
    namespace: str
    token_sha256: tuple[bytes, ...]
    scopes: frozenset[Scope] = USUAL_SCOPES
    weight: float = 1.0
    quota_tokens_per_minute: int | None = None


class TokensFileError(ValueError):
    """An invalid tokens file. The message contains no token."""


def read_tenants(text: str, own_namespace: str = "") -> tuple[Tenant, ...]:
    """Return the tenants in a tokens file, in order.

    A tenant may share the server's namespace (`own_namespace`) only if the tenant's table sets this namespace.

    Raises:
        TokensFileError: The text is not TOML, has no tenant, or has an invalid value.
    """
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TokensFileError(f"is not valid TOML: {error}") from None
    if not tables:
        raise TokensFileError(
            "has no tenants, so all calls would fail; add a table [NAME] with a token for each tenant"
        )
    tenants = tuple(_tenant(name, table) for name, table in tables.items())
    own = tables.get(own_namespace)
    if own is not None and "namespace" not in own:
        raise TokensFileError(
            f"[{own_namespace}] namespace: a tenant with this name would share the server's own namespace; rename the "
            f'tenant, set another namespace, or write namespace = "{own_namespace}" to share the namespace'
        )
    _check_distinct(tenants)
    return tenants


def _tenant(name: str, table: object) -> Tenant:
    if NAME.fullmatch(name) is None:
        raise TokensFileError(f"[{name[:64]!r}]: a tenant's name must be 1 to 64 letters, digits, '_', '.' or '-'")
    if not isinstance(table, dict):
        raise TokensFileError(f"{name}: must be a table; write [{name}] and its keys below it")
    unknown = [key for key in table if key not in _KEYS]
    if unknown:
        raise TokensFileError(f"[{name}] {unknown[0][:64]!r}: unknown key; use one of {', '.join(_KEYS)}")
    return Tenant(
        name=name,
        namespace=_read(name, table, "namespace", _namespace, name),
        token_sha256=_digests(name, table),
        scopes=_read(name, table, "scopes", _scopes, USUAL_SCOPES),
        weight=_read(name, table, "weight", _weight, 1.0),
        quota_tokens_per_minute=_read(name, table, "quota_tokens_per_minute", _quota, None),
    )


def _read(name: str, table: Mapping[str, Any], key: str, read: Callable[[object], Any], otherwise: Any) -> Any:
    if key not in table:
        return otherwise
    try:
        return read(table[key])
    except ValueError as error:
        raise TokensFileError(f"[{name}] {key}: {error}") from None


def _digests(name: str, table: Mapping[str, Any]) -> tuple[bytes, ...]:
    clear = _read(name, table, "token", _tokens, ())
    hashed = _read(name, table, "token_sha256", _hashes, ())
    found = tuple(dict.fromkeys((*clear, *hashed)))
    if not found:
        raise TokensFileError(f"[{name}] token: is missing; set a token, or its SHA-256 as token_sha256")
    return found


def _texts(value: object) -> list[str]:
    given = value if isinstance(value, list) else [value]
    texts = [each for each in given if isinstance(each, str)]
    if not texts or len(texts) < len(given):
        raise ValueError("must be a string, or a list of one or more strings")
    return texts


def _tokens(value: object) -> list[bytes]:
    texts = _texts(value)
    for text in texts:
        if _TOKEN.fullmatch(text) is None:
            raise ValueError("a token must be 1 to 1024 printable ASCII characters without spaces")
    return [sha256(text.encode()).digest() for text in texts]


def _hashes(value: object) -> list[bytes]:
    texts = _texts(value)
    for text in texts:
        if _SHA256.fullmatch(text) is None:
            raise ValueError("must be the SHA-256 of the token without a newline, as 64 hex digits")
    digests = [bytes.fromhex(text) for text in texts]
    if _EMPTY_SHA256 in digests:
        raise ValueError("is the digest of an empty token; use a token that is not empty")
    return digests


def _namespace(value: object) -> str:
    if not isinstance(value, str) or NAME.fullmatch(value) is None:
        raise ValueError("must be 1 to 64 letters, digits, '_', '.' or '-'")
    return value


def _scopes(value: object) -> frozenset[Scope]:
    known = [scope.value for scope in Scope]
    given = value if isinstance(value, list) else []
    if not given or any(not isinstance(each, str) or each not in known for each in given):
        raise ValueError(f"must be a list of one or more of {', '.join(known)}")
    return frozenset(map(Scope, given))


def _weight(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_WEIGHT:
        raise ValueError(f"must be a number above 0 and at most {MAX_WEIGHT:g}")
    return float(value)


def _quota(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_QUOTA_TOKENS_PER_MINUTE:
        raise ValueError(
            f"must be a whole number from 1 to {MAX_QUOTA_TOKENS_PER_MINUTE}; leave the key out for no limit"
        )
    return value


def _check_distinct(tenants: tuple[Tenant, ...]) -> None:
    owners: dict[bytes, str] = {}
    for tenant in tenants:
        for digest in tenant.token_sha256:
            other = owners.setdefault(digest, tenant.name)
            if other != tenant.name:
                raise TokensFileError(
                    f"[{tenant.name}] token: [{other}] has the same token; give each tenant a different token"
                )
