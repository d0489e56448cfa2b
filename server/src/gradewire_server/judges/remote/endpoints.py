"""The API and the address behind the setting judge_url."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from gradewire_server.judges.remote.errors import ADDRESS_SETTING, KEY_SETTING, Reply
from gradewire_server.judges.remote.messages_api import API_VERSION, message_answer, message_dialect, message_request
from gradewire_server.judges.remote.openai_dialect import Dialect, ServerKind, answer_of, dialect_of, request_body
from gradewire_server.judges.remote.responses_api import response_answer, response_dialect, response_request
from gradewire_server.judges.remote.server import Answer, Question
from gradewire_server.settings.judge import Prefill

_ANTHROPIC: Final = "anthropic.com"
_AZURE: Final = re.compile(r".+\.(?:openai|cognitiveservices|services\.ai)\.azure\.(?:com|us|cn)")
"""Hosts of Azure that take a key in a header of its own. Others, such as models.ai.azure.com, take a bearer token."""
_AZURE_QUERY: Final = "api-version"
_ENTRA_TOKEN: Final = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_KNOWN_NAMES: Final = frozenset({_AZURE_QUERY, "api_version", "version", "beta", "region", "location", "project"})
"""Names in a query that hold no key. Messages and manifests show the address with its query."""


@dataclass(frozen=True, slots=True)
class Api:
    """One API for a judge's questions.

    Attributes:
        path: The path below the base address.
        request_body: Function that returns a request for a question.
        answer_of: Function that parses a successful reply, and raises RemoteError if it is not valid.
        dialect: Function that returns all features that a server of a type may have in this API.
        wanted: The API's name in messages.
    """

    path: str
    request_body: Callable[[Question, str, Dialect], dict[str, object]]
    answer_of: Callable[[Reply, Question, Dialect], Answer]
    dialect: Callable[[ServerKind, Prefill, int], Dialect]
    wanted: str


CHAT: Final = Api("chat/completions", request_body, answer_of, dialect_of, "chat completions")
RESPONSES: Final = Api("responses", response_request, response_answer, response_dialect, "Responses API")
MESSAGES: Final = Api("messages", message_request, message_answer, message_dialect, "Messages API")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An API at an address.

    Attributes:
        base: The base address, without the API's path and without the query.
        query: The query, which every request gets.
    """

    api: Api
    base: str
    query: str

    def headers(self, token: str) -> Mapping[str, str]:
        """Return the headers with the key ("" means no key), as the provider expects them."""
        version = {"anthropic-version": API_VERSION} if self.api is MESSAGES else {}
        if not token:
            return version
        host = urlsplit(self.base).hostname or ""
        azure = _AZURE.fullmatch(host) is not None or _AZURE_QUERY in _names(self.query)
        bearer = {"authorization": f"Bearer {token}"}
        if azure and _ENTRA_TOKEN.fullmatch(token):
            return version | bearer
        if self.api is MESSAGES:
            # Other servers with this API expect the same key in either header; Anthropic refuses a second one.
            return version | {"x-api-key": token} | ({} if azure or _is_below(host, _ANTHROPIC) else bearer)
        return {"api-key": token} if azure else bearer


def endpoint_of(url: str) -> Endpoint:
    """Return the API at an address. The address may end with the API's path; else the host decides.

    Raises:
        ValueError: The query contains a character that no request may have, a fragment, or an unknown name, which may
            be a key's.
    """
    address, _, query = url.partition("?")
    address = address.rstrip("/")
    if not (query.isascii() and query.isprintable()) or " " in query:
        raise ValueError(
            f"the query of {ADDRESS_SETTING} must have only printable ASCII characters without spaces. Write a space "
            "as %20"
        )
    # Some servers split a query at semicolons too.
    if {"#", ";"} & set(query) or not _KNOWN_NAMES.issuperset(_names(query)):
        raise ValueError(
            f"{ADDRESS_SETTING} must be a base address such as https://host/v1, without fragment. Its query may only "
            f"contain {', '.join(sorted(_KNOWN_NAMES))}, because a key must not stand in an address. Set a key with "
            f"{KEY_SETTING}"
        )
    for api in (CHAT, RESPONSES, MESSAGES):
        base = address.removesuffix(f"/{api.path}")
        # In http://messages, the name is the host, not the API.
        if base != address and not base.endswith("/"):
            return Endpoint(api, base, query)
    host = urlsplit(address).hostname or ""
    return Endpoint(MESSAGES if _is_below(host, _ANTHROPIC) else CHAT, address, query)


def _names(query: str) -> list[str]:
    return [name.casefold() for name, _ in parse_qsl(query, keep_blank_values=True)]


def _is_below(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")
