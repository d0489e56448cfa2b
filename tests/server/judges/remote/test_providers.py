"""Providers as documented: the address of a request, the header with the key, and an answer in the provider's shape."""

import pytest
from tests.server.judges.remote.remote_judges import Counted, choose, opened
from tests.support.fakes.odd_openai import OddServer, reply
from tests.support.judges.provider_answers import PROVIDERS, Provider

from gradewire_server.domain.judge import Choice
from gradewire_server.judges.remote.endpoints import endpoint_of

BY_NAME = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name.casefold())


@BY_NAME
def test_a_request_goes_to_the_providers_address_with_the_key_in_its_header(provider: Provider) -> None:
    endpoint = endpoint_of(provider.url)
    assert f"{endpoint.base}/{endpoint.api.path}" == provider.path
    keys = {name for name, value in endpoint.headers("hidden").items() if "hidden" in value}
    assert keys == {provider.header or "authorization"}
    assert not {name for name, value in endpoint.headers("").items() if "hidden" in value}


@BY_NAME
async def test_an_answer_in_the_providers_shape_is_read(provider: Provider) -> None:
    observer = Counted()
    api = endpoint_of(provider.url).api
    async with OddServer(answers=[reply(200, provider.body)]) as server:
        async with opened(f"{server.url}/{api.path}", observer, token="key" if provider.header else "") as judge:
            verdict = (await judge.choose(choose(), deadline_s=None)).answer
            assert isinstance(verdict, Choice), verdict
            assert judge.trouble() == ""
        tested = len(server.heard) - 1
    assert verdict.probabilities == (pytest.approx((0.011, 0.985, 0.004), abs=1e-3) if provider.told else (0, 1, 0))
    assert (verdict.mass is not None) == provider.told
    asks_for_probabilities = "logprobs" in str(server.heard[0].body)
    # Without log probabilities, our own question says that the server has none.
    assert tested == (asks_for_probabilities and not provider.told)
    assert verdict.prompt_tokens == 40 * (1 + tested)
    assert server.heard[0].path == f"/v1/{api.path}"
