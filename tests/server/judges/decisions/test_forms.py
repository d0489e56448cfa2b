"""Which form a server is asked in: found out with a question of our own, or said by the address."""

import pytest
from tests.server.judges.decisions.decisions import SURE, decided, is_own, listed, opened
from tests.server.judges.remote.remote import Counted, choose
from tests.support.fakes.odd_openai import Heard, OddServer, reply

from gradewire_server.domain.judge import Choice
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.decisions.backend import DecisionJudges, endpoint_of
from gradewire_server.judges.decisions.forms import DECISIONS, FORMS, SYSTEM_ONE, SYSTEM_ONE_AT_DECISIONS
from gradewire_server.judges.openai.backend import OpenAIJudges
from gradewire_server.judges.triton.backend import TritonJudges
from gradewire_server.settings.judge import RemoteJudgeConfig

OWN = {"true": 0.9, "false": 0.1}


def system_one_only(heard: Heard) -> bytes:
    if heard.path != "/v1/systemone":
        return reply(404, {"error": "not found"})
    return decided(OWN if is_own(heard) else SURE)


def decisions_only(heard: Heard) -> bytes:
    if heard.path != "/v1/decisions":
        return reply(404, {"error": "not found"})
    return listed(OWN if is_own(heard) else SURE)


def gateway(heard: Heard) -> bytes:
    """System One's form under the other address, as some gateways have it."""
    if heard.path != "/v1/decisions":
        return reply(405, b"")
    if "state" not in heard.body:
        return reply(400, {"error": "state: required"})
    return decided(OWN if is_own(heard) else SURE)


@pytest.mark.parametrize(
    ("answer", "paths"),
    [
        (system_one_only, ["/v1/systemone", "/v1/systemone"]),
        (decisions_only, ["/v1/systemone", "/v1/decisions", "/v1/decisions"]),
        (gateway, ["/v1/systemone", "/v1/decisions", "/v1/decisions", "/v1/decisions"]),
    ],
)
async def test_the_form_is_found_out_once_without_any_item(answer: object, paths: list[str]) -> None:
    async with OddServer(answers=[answer]) as server, opened(server.url) as judge:  # type: ignore[list-item]
        found = (await judge.choose(choose(), deadline_s=None)).answer
        heard = [each.path for each in server.heard]
        assert [is_own(each) for each in server.heard] == [True] * (len(paths) - 1) + [False]
    assert isinstance(found, Choice)
    assert found.probabilities == pytest.approx((0.1, 0.2, 0.7))
    assert heard == paths


async def test_an_address_of_an_endpoint_says_the_form() -> None:
    async with OddServer(answers=[decisions_only]) as server:
        async with opened(f"{server.url}/decisions/") as judge:
            assert isinstance((await judge.choose(choose(), deadline_s=None)).answer, Choice)
        assert [heard.path for heard in server.heard] == ["/v1/decisions", "/v1/decisions"]
        with pytest.raises(JudgeUnavailableError, match="no decisions of a decision model"):
            async with opened(f"{server.url}/systemone"):
                pass


def test_only_whole_names_are_endpoints() -> None:
    assert endpoint_of("http://h/v1") == ("http://h/v1", FORMS)
    assert endpoint_of("http://h/v1/systemone") == ("http://h/v1", (SYSTEM_ONE,))
    assert endpoint_of("http://h/v1/decisions") == ("http://h/v1", (DECISIONS, SYSTEM_ONE_AT_DECISIONS))
    assert endpoint_of("http://h/mysystemone") == ("http://h/mysystemone", FORMS)
    # What is left must be an address.
    assert endpoint_of("http://systemone") == ("http://systemone", FORMS)


def test_it_is_another_judge_than_the_same_name_behind_other_servers() -> None:
    config = RemoteJudgeConfig("http://127.0.0.1:1/v1", "m")
    triton = TritonJudges(RemoteJudgeConfig("127.0.0.1:1", "m"), Counted())
    digests = {
        backend.listed()[0].digest
        for backend in (OpenAIJudges(config, Counted()), DecisionJudges(config, Counted()), triton)
    }
    assert len(digests) == 3


def test_its_public_face_says_what_it_is() -> None:
    (status,) = DecisionJudges(RemoteJudgeConfig("http://127.0.0.1:1/v1", "m"), Counted()).listed()
    assert (status.name, status.kind, status.precision, status.state) == ("m", "judge", "remote", "built")
    assert any("backend decisions" in remark for remark in status.remarks)
    assert any("writes nothing and is shown no demonstrations" in remark for remark in status.remarks)
    assert any("pinned by its name" in remark for remark in status.remarks)
