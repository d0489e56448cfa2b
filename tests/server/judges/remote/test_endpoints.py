"""The setting judge_url chooses the API, the address, the query of every request and the header with the key."""

import pytest
from tests.server.judges.remote.remote_judges import Counted, choose, opened
from tests.support.fakes.odd_openai import OddServer, completion, reply

from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.judge import Choice
from gradewire_server.judges.backend import JudgeUnavailableError
from gradewire_server.judges.remote.endpoints import CHAT, MESSAGES, RESPONSES, Api, endpoint_of
from gradewire_server.judges.remote.openai import OpenAIJudges
from gradewire_server.settings.judge import RemoteJudgeConfig

GOOD = completion("2", [{"2": -0.1, "1": -3.0}])
AZURE = "https://r.openai.azure.com/openai/deployments/d"
VERTEX = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi"
ENTRA = "eyJh-b.eyJj.d_e"


@pytest.mark.parametrize(
    ("url", "api", "base", "query"),
    [
        ("https://api.openai.com/v1", CHAT, "https://api.openai.com/v1", ""),
        ("https://api.openai.com/v1/", CHAT, "https://api.openai.com/v1", ""),
        ("https://api.openai.com/v1/chat/completions", CHAT, "https://api.openai.com/v1", ""),
        ("https://api.openai.com/v1/responses", RESPONSES, "https://api.openai.com/v1", ""),
        (f"{AZURE}/chat/completions?api-version=2024-10-21", CHAT, AZURE, "api-version=2024-10-21"),
        (f"{AZURE}?api-version=2024-10-21", CHAT, AZURE, "api-version=2024-10-21"),
        (VERTEX, CHAT, VERTEX, ""),
        ("https://api.anthropic.com/v1", MESSAGES, "https://api.anthropic.com/v1", ""),
        ("https://api.anthropic.com/v1/messages", MESSAGES, "https://api.anthropic.com/v1", ""),
        ("https://api.anthropic.com/v1/chat/completions", CHAT, "https://api.anthropic.com/v1", ""),
        ("http://127.0.0.1:8000/v1/messages", MESSAGES, "http://127.0.0.1:8000/v1", ""),
        ("http://messages", CHAT, "http://messages", ""),
        ("http://notanthropic.com/v1", CHAT, "http://notanthropic.com/v1", ""),
    ],
)
def test_the_end_of_the_address_or_its_host_chooses_the_api(url: str, api: Api, base: str, query: str) -> None:
    endpoint = endpoint_of(url)
    assert endpoint.api is api
    assert (endpoint.base, endpoint.query) == (base, query)


@pytest.mark.parametrize(
    ("url", "key", "headers"),
    [
        ("https://api.openai.com/v1", "k", {"authorization": "Bearer k"}),
        ("https://api.openai.com/v1", "", {}),
        (f"{AZURE}?api-version=1", "k", {"api-key": "k"}),
        ("https://r.openai.azure.com/openai/v1", "k", {"api-key": "k"}),
        ("https://gateway.example/openai?api-version=1", "k", {"api-key": "k"}),
        ("https://r.openai.azure.us/openai/v1", "k", {"api-key": "k"}),
        ("https://r.eastus.models.ai.azure.com/v1", "k", {"authorization": "Bearer k"}),
        ("https://openai.azure.com.example/v1", "k", {"authorization": "Bearer k"}),
        (f"{AZURE}?api-version=1", ENTRA, {"authorization": f"Bearer {ENTRA}"}),
        (VERTEX, ENTRA, {"authorization": f"Bearer {ENTRA}"}),
        ("https://api.anthropic.com/v1", "k", {"anthropic-version": "2023-06-01", "x-api-key": "k"}),
        ("https://api.anthropic.com/v1", "", {"anthropic-version": "2023-06-01"}),
        (
            "http://127.0.0.1:8000/v1/messages",
            "k",
            {"anthropic-version": "2023-06-01", "x-api-key": "k", "authorization": "Bearer k"},
        ),
        (
            "https://r.services.ai.azure.com/anthropic/v1/messages",
            "k",
            {"anthropic-version": "2023-06-01", "x-api-key": "k"},
        ),
    ],
)
def test_the_key_stands_where_the_provider_looks_for_it(url: str, key: str, headers: dict[str, str]) -> None:
    assert endpoint_of(url).headers(key) == headers


NO_QUERIES = [
    *(
        "key=hidden",
        "api_key=hidden",
        "subscription-key=hidden",
        "sig=hidden",
        "code=hidden",
        "Token",
        "api-version=1#hidden",
    ),
    *("pwd=hidden", "credential=hidden", "jwt=hidden", "x-amz-signature=hidden", "hidden", "=hidden", "k%65y=hidden"),
    *("api-version=1&pwd=hidden", "api-version=1;pwd=hidden", "api-version&hidden", "unknown-name=hidden"),
]


@pytest.mark.parametrize("query", NO_QUERIES)
@pytest.mark.parametrize("path", ["/v1", "/v1/responses", "/v1/messages"])
def test_a_query_that_may_hold_a_key_is_refused_at_start_and_not_repeated(path: str, query: str) -> None:
    with pytest.raises(ValueError, match=r"judge_url.* api-version.* Set a key with judge_token") as caught:
        OpenAIJudges(RemoteJudgeConfig(f"https://host{path}?{query}", "m"), Counted())
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("query", ["api-version=2024-10-21", "API-Version=1&region=eu", "beta=true", ""])
def test_a_query_of_known_names_is_sent(query: str) -> None:
    assert endpoint_of(f"https://host/v1?{query}").query == query


@pytest.mark.parametrize("query", ["api-version=a b", "region=münchen", "api-version=1\r\nx-other: 1", "beta=\t", " "])
def test_a_query_that_no_request_may_have_is_refused_at_start(query: str) -> None:
    with pytest.raises(ValueError, match=r"query of judge_url .* Write a space as %20"):
        OpenAIJudges(RemoteJudgeConfig(f"https://host/v1?{query}", "m"), Counted())
    assert endpoint_of("https://host/v1?region=a%20b").query == "region=a%20b"


def test_a_begun_answer_needs_an_api_that_continues_it() -> None:
    config = RemoteJudgeConfig("https://host/v1/responses", "m", assistant_prefill="yes")
    with pytest.raises(ValueError, match="judge_assistant_prefill"):
        OpenAIJudges(config, Counted())


def test_another_api_is_another_judge_to_the_cache() -> None:
    def digest(url: str) -> str:
        return OpenAIJudges(RemoteJudgeConfig(url, "m"), Counted()).listed()[0].digest

    assert digest("https://host/v1") == digest("https://host/v1/chat/completions")
    assert len({digest(f"https://host/v1{path}") for path in ("", "/responses", "/messages")}) == 3


async def test_an_azure_deployment_gets_its_version_and_its_key() -> None:
    async with OddServer(models=reply(404, {}), answers=[GOOD]) as server:
        url = f"{server.url}/openai/deployments/d/chat/completions?api-version=2024-10-21"
        async with opened(url) as judge:
            verdict = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(verdict, Choice)
    (heard,) = server.heard
    assert heard.path == "/v1/openai/deployments/d/chat/completions?api-version=2024-10-21"
    assert heard.headers["api-key"] == "key"
    assert "authorization" not in heard.headers


async def test_an_address_in_a_message_has_no_query() -> None:
    async with OddServer(models=reply(404, {}), answers=[reply(404, {})]) as server:
        url = f"{server.url}/chat/completions?api-version=2024-10-21"
        async with opened(url) as judge:
            failure = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(failure, Failure)
    assert f"server at {server.url} knows no model 'm'" in failure.message
    assert "api-version" not in failure.message


@pytest.mark.parametrize(
    "models",
    [
        reply(200, {"data": [{"id": "gpt-4o-2024-08-06"}]}),  # Azure lists models, and requests name deployments
        reply(200, {"data": [{"id": "m:latest", "owned_by": "library"}]}),  # Ollama
        reply(403, {"error": {"message": "Missing scopes: api.model.read"}}),  # a restricted key of OpenAI's
        reply(400, {"error": {"message": "anthropic-version: header is required"}}),
        reply(200, b"<html>"),
        reply(200, {"data": [{"id": "x" * (2 << 20)}]}),
    ],
)
async def test_a_list_of_models_that_does_not_fit_proves_nothing(models: bytes) -> None:
    async with OddServer(models=models, answers=[GOOD]) as server, opened(server.url) as judge:
        verdict = (await judge.choose(choose(), deadline_s=None)).answer
    assert isinstance(verdict, Choice)
    assert server.listed == 1


async def test_a_model_that_is_neither_listed_nor_served_is_refused_with_those_that_are() -> None:
    models = reply(200, {"data": [{"id": "another", "owned_by": "vllm"}]})
    async with OddServer(models=models, answers=[reply(404, {"error": "no such model"})]) as server:
        with pytest.raises(JudgeUnavailableError, match="has no model 'm', only another"):
            async with opened(server.url):
                pass
    assert len(server.heard) == 1


@pytest.mark.parametrize(
    ("own", "status"),
    [(reply(429, {}), Status.UNAVAILABLE), (reply(200, {}), Status.MODEL_UNAVAILABLE)],
)
async def test_a_doubt_that_cannot_be_settled_keeps_the_judge_closed(own: bytes, status: Status) -> None:
    models = reply(200, {"data": [{"id": "another"}]})
    async with OddServer(models=models, answers=[own]) as server:
        with pytest.raises(JudgeUnavailableError) as caught:
            async with opened(server.url):
                pass
    assert caught.value.failure.status is status
