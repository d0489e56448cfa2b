"""One decision server, asked by itself: what it answers is read as it was asked."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tests.server.judges.decisions.decisions import about
from tests.server.judges.remote.remote import eventually

from gradewire_server.judges.decisions.server import DecisionServer
from gradewire_server.judges.remote.http_client import HttpClient, Reply
from gradewire_server.judges.remote.server import Question
from gradewire_server.settings.judge import RemoteJudgeConfig


class Replaced(HttpClient):
    """Leads to a server of OpenAI's form, and later to one of System One's; the first holds back what it is asked."""

    def __init__(self) -> None:
        super().__init__(RemoteJudgeConfig("http://127.0.0.1:1", "m"))
        self.is_another_one = False
        self.held = 0
        self.gate = asyncio.Event()

    async def post(self, path: str, body: Mapping[str, object]) -> Reply:
        questions: Any = body["questions"]
        if path == "systemone":
            if not self.is_another_one:
                return Reply(404, b"{}", "", "http://h")
            shares = {name: dict.fromkeys(each["criteria"], 0.5) for name, each in questions.items()}
            answers: Any = {name: {"type": "choice", "probabilities": share} for name, share in shares.items()}
        else:
            if "Water" not in str(body["input"]):
                self.held += 1
                await self.gate.wait()
            labels = [choice["value"] for choice in questions[0]["choices"]]
            given = [{"value": label, "probability": 1 / len(labels)} for label in labels]
            answers = [{"type": "choice", "name": questions[0]["name"], "probabilities": given}]
        return Reply(200, json.dumps({"answers": answers}).encode(), "", "http://h")


async def test_an_answer_is_read_in_the_form_in_which_it_was_asked_for() -> None:
    """A probe that found the other form meanwhile made it unreadable."""
    client = Replaced()
    server = DecisionServer(client, "m")
    await server.find_out()
    need = about("x")
    asking = asyncio.create_task(server.ask(Question(need.prompt, options=need.options)))
    await eventually(lambda: client.held == 1)
    client.is_another_one = True
    await server.probe()
    client.gate.set()
    assert (await asking).probabilities == (1 / 3,) * 3
    await server.close()
