"""The backend `decisions`: judges that are decision models behind a server."""

import asyncio
from dataclasses import replace
from typing import Final

from gradewire_server.judges.decisions.forms import FORMS, Form
from gradewire_server.judges.decisions.server import DecisionServer
from gradewire_server.judges.observers import RemoteJudgeObserver
from gradewire_server.judges.remote.backend import RemoteBackend
from gradewire_server.judges.remote.http_client import HttpClient, checked
from gradewire_server.settings.judge import RemoteJudgeConfig

_REMARK: Final = "A decision model: it chooses between labels, writes nothing and is shown no demonstrations."


class DecisionJudges(RemoteBackend):
    """One decision model behind a server.

    Args:
        config: Where the server is: its base address, or that of its endpoint (…/systemone, …/decisions).
        observer: Hears of the requests.

    Raises:
        ValueError: The address or the token is not valid.
    """

    def __init__(self, config: RemoteJudgeConfig, observer: RemoteJudgeObserver) -> None:
        checked(config)
        base, forms = endpoint_of(config.url)
        reached = replace(config, url=base)

        async def server() -> DecisionServer:
            # On a thread: it reads certificates and imports what connects.
            client = await asyncio.to_thread(HttpClient.loaded, reached)
            return DecisionServer(client, config.model, forms, most_questions=config.questions_per_request)

        super().__init__("decisions", config, observer, server, remarks=(_REMARK,))


def endpoint_of(url: str) -> tuple[str, tuple[Form, ...]]:
    """The base address, and the forms that are tried behind it: those of the endpoint where the address names one."""
    address = url.rstrip("/")
    base, _, last = address.rpartition("/")
    named = tuple(form for form in FORMS if form.path == last)
    # In http://systemone it is the host.
    return (base, named) if named and not base.endswith("/") else (address, FORMS)
