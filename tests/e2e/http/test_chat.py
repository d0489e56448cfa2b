"""Chat and decisions before a real judge: SmolLM2, which writes badly and decides by chance, and always the same."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx2
import openai
import pytest
from tests.support.judges.smollm2 import NAME, smollm2_repository
from tests.support.servers.server_process import ServerProcess

from gradewire_proto.v1 import judging_pb2

HELLO = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> Iterator[ServerProcess]:
    settings = {
        "model_repository": minilm,
        "judge_repository": smollm2_repository(),
        "judge_model": NAME,
        "http_api_port": 0,
    }
    with ServerProcess(tmp_path_factory.mktemp("chat"), **settings) as process:
        opened = {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 1}
        reply = httpx2.post(f"{process.api}/v1/chat/completions", json=opened, timeout=100, trust_env=False)
        assert reply.status_code == 200, reply.text
        yield process


def test_the_openai_client_and_grpc_get_the_same_answer(server: ServerProcess) -> None:
    with openai.OpenAI(base_url=f"{server.api}/v1", api_key="any") as client:
        assert [model.id for model in client.models.list()] == [NAME]
        asked: dict[str, Any] = {"model": NAME, "messages": HELLO, "temperature": 0, "max_tokens": 24}
        first, again = (client.chat.completions.create(**asked) for _ in range(2))
    assert first.choices == again.choices
    assert first.choices[0].message.content
    assert 0 < first.usage.completion_tokens <= 24
    turns = [
        judging_pb2.ChatTurn(role=judging_pb2.CHAT_ROLE_SYSTEM, text=HELLO[0]["content"]),
        judging_pb2.ChatTurn(role=judging_pb2.CHAT_ROLE_USER, text=HELLO[1]["content"]),
    ]
    request = judging_pb2.CompleteRequest(turns=turns, max_tokens=24)
    with grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary(
            "/gradewire.v1.Judging/Complete",
            judging_pb2.CompleteRequest.SerializeToString,
            judging_pb2.CompleteResponse.FromString,
        )
        reply = call(request, timeout=60)
    assert reply.text == first.choices[0].message.content
    assert reply.cache_hits.memory == 1


def test_a_chat_that_is_too_long_is_refused_and_not_cut(server: ServerProcess) -> None:
    with (
        openai.OpenAI(base_url=f"{server.api}/v1", api_key="any") as client,
        pytest.raises(openai.BadRequestError) as caught,
    ):
        client.chat.completions.create(model=NAME, messages=[{"role": "user", "content": "word " * 20_000}])
    assert caught.value.code == "invalid_argument"


QUESTIONS = {
    "refund": {"type": "noul", "instructions": "Is the user asking for money back?"},
    "colour": {"type": "choice", "instructions": "Which colour is named?", "criteria": ["red", "blue", "green"]},
}


def test_decisions_of_a_real_judge_are_probabilities_and_the_same_again(server: ServerProcess) -> None:
    asked = {"state": "The blue one was charged twice; I want my money back.", "questions": QUESTIONS}
    first, again = (
        httpx2.post(f"{server.api}/v1/systemone", json=asked, timeout=100, trust_env=False).json() for _ in range(2)
    )
    assert first["model"] == NAME
    assert first["answers"] == again["answers"]
    assert 0 < first["answers"]["refund"]["noul"] < 1
    shares = first["answers"]["colour"]["probabilities"]
    assert set(shares) == {"red", "blue", "green"}
    assert sum(shares.values()) == pytest.approx(1)


def test_a_gradewire_server_can_be_the_judge_of_another(server: ServerProcess, tmp_path: Path, minilm: Path) -> None:
    """The client of decision servers checks the form of what it gets, and opens no judge that answers otherwise."""
    settings = {
        "model_repository": minilm,
        "judge_backend": "decisions",
        "judge_url": f"{server.api}/v1",
        "judge_remote_model": NAME,
        "http_api_port": 0,
    }
    with ServerProcess(tmp_path, **settings) as other:
        asked = {
            "items": [{"question": "Which animal?", "references": ["cat"], "prediction": "a feline"}],
            "metrics": [{"lave": {}}],
        }
        reply = httpx2.post(f"{other.api}/gradewire.v1.Scoring/Score", json=asked, timeout=100, trust_env=False).json()
        (result,) = reply["items"][0]["results"]
        assert result["status"] == "STATUS_OK", result
        assert 0 <= result["score"] <= 1
