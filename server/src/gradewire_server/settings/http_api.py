"""The HTTP API: a gateway in a process of its own, which the server starts."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from gradewire_server.settings.setting import GROUP, Setting
from gradewire_server.settings.types import Count, Names, OptionalPort


@dataclass(frozen=True, slots=True, config=GROUP)
class HttpApiConfig:
    """Where it listens, and how much it takes; without `port` there is none."""

    port: Annotated[
        OptionalPort,
        Setting("http_api_port", "Port of the HTTP API (JSON for every method); 0 takes a free one, unset: none."),
    ] = None
    host: Annotated[str, Field(min_length=1), Setting("http_api_host", "Address that the HTTP API listens on.")] = (
        "127.0.0.1"
    )
    names: Annotated[
        Names,
        Setting(
            "http_api_names",
            "Host names that callers of the HTTP API may use; none: those of the loopback address where it listens "
            "there, else any.",
        ),
    ] = ()
    max_requests: Annotated[
        Count, Setting("http_api_max_requests", "Requests of the HTTP API in flight; one more is told to come back.")
    ] = 128
