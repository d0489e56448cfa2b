"""Opening a judge's server keeps nobody from the event loop: its client is made on a thread."""

import threading

import pytest
from tests.server.judges.remote.remote_judges import Counted

from gradewire_server.judges.remote.http_client import HttpClient
from gradewire_server.judges.remote.openai import OpenAIJudges
from gradewire_server.settings.judge import RemoteJudgeConfig


class MadeError(Exception):
    """Stops the opening once a client would be made."""


async def test_a_client_is_made_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    made_on: list[threading.Thread] = []

    def make(_self: HttpClient, _config: RemoteJudgeConfig, **_: object) -> None:
        made_on.append(threading.current_thread())
        raise MadeError

    monkeypatch.setattr(HttpClient, "__init__", make)
    judges = OpenAIJudges(RemoteJudgeConfig("http://127.0.0.1:1/v1", model="m"), Counted())
    with pytest.raises(MadeError):
        await judges.open("m")
    assert made_on != [threading.current_thread()]
    assert len(made_on) == 1
