"""A client travels as its settings, and starts afresh where it arrives."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.client.small_server import SmallServer

from gradewire import AsyncClient, Client, Scorer, SubmitLimits, Tls
from gradewire.testing import StubTransport, echo_scores
from gradewire_proto.v1 import scoring_pb2

RIGHT = {"references": ["a"], "prediction": "a"}


def sent(client: Any) -> Any:
    """The client as another process gets it."""
    return pickle.loads(pickle.dumps(client))  # noqa: S301 - the test's own


def answer(request: scoring_pb2.ScoreRequest) -> scoring_pb2.ScoreResponse:
    return echo_scores(request, score=lambda _: 1.0)


def test_a_client_in_use_is_pickled_with_all_its_settings(small_server: SmallServer) -> None:
    small_server.script.hold.clear()
    limits = SubmitLimits(max_pending_items=3)
    with Client(small_server.address, token="s3cret", deadline_s=7, submit_limits=limits) as client:  # noqa: S106 - own
        futures = [client.submit([RIGHT]) for _ in range(3)]
        with sent(client) as copied:
            small_server.script.hold.set()
            assert len(futures[0].result(10)) == 1
            assert copied.score([RIGHT])[0].scores["smile"].score == 1.0
            assert small_server.script.metadata[-1]["authorization"] == "Bearer s3cret"
            assert "max_pending_items=3" in str(copied.submit([RIGHT] * 4).exception(10))


def test_closing_one_leaves_the_other_open(small_server: SmallServer) -> None:
    with Client(small_server.address) as client:
        copy.copy(client).close()
        assert len(client.score([RIGHT])) == 1


async def test_async_clients_too(small_server: SmallServer) -> None:
    async with AsyncClient(small_server.address) as client:
        await client.models()
        async with sent(client) as copied:
            assert (await copied.score([RIGHT]))[0].scores["smile"].score == 1.0


def test_certificates_travel_as_paths() -> None:
    client = Client("127.0.0.1:1", tls=Tls(root_certificates=Path("ca.pem")))
    assert b"ca.pem" in pickle.dumps(client)


def test_a_transport_travels_where_it_can_be_pickled() -> None:
    with sent(Client(transport=StubTransport(answer))) as client:
        assert client.score([RIGHT])[0].scores["smile"].score == 1.0
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError), match="lambda"):
        pickle.dumps(Client(transport=StubTransport(lambda _: scoring_pb2.ScoreResponse())))


def test_a_scorer_travels_without_its_engine(tmp_path: Path) -> None:
    with Scorer.embedded(disk_directory=tmp_path, judge_backend="none") as scorer:
        before = scorer.score([RIGHT], "exact_match")[0].scores["exact_match"].score
        scorer.close()
        with sent(scorer) as copied:
            assert copied.score([RIGHT], "exact_match")[0].scores["exact_match"].score == before


def test_no_token_is_shown_where_a_client_is_printed() -> None:
    client = Client("127.0.0.1:1", token="s3cret")  # noqa: S106 - a test's own
    assert "s3cret" not in repr(client) + repr(vars(client))
