"""Opening a judge's server keeps nobody from the event loop: its client is made on a thread."""

import threading
from pathlib import Path

import pytest
from tests.server.judges.remote.remote_judges import Counted
from tests.support.fakes.odd_openai import OddServer, completion

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


async def test_a_judge_that_cannot_be_made_leaves_no_connection_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed: list[HttpClient] = []
    close = HttpClient.close

    async def noted(client: HttpClient) -> None:
        closed.append(client)
        await close(client)

    monkeypatch.setattr(HttpClient, "close", noted)
    async with OddServer(answers=[completion("2", [{"2": -0.1}])]) as server:
        judges = OpenAIJudges(RemoteJudgeConfig(server.url, model="m", places_file=tmp_path), Counted())
        with pytest.raises(IsADirectoryError):  # no file for places
            await judges.open("m")
    assert len(closed) == 1
