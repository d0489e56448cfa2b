"""`prepare(immutable=True)` of the client against a server, in one request and in several."""

import pytest
from tests.support.servers.wire import wire_server

from gradewire import AsyncClient, InvalidRequest
from gradewire_server.settings.limits import Limits

METRIC = "cider?corpus=prepared"
ENTRIES = [{"question": "what?", "references": [f"a {name}", "the e\u0301l\u00e9phant"]} for name in "abcde"]
ITEM = {"question": "what?", "references": ["a b", "a c d"], "prediction": "a b c"}


@pytest.mark.parametrize("max_items", [2, 5, 4096])
async def test_a_set_stays_what_its_name_says(max_items: int) -> None:
    async with (
        wire_server(limits=Limits(max_items_per_request=max_items)) as wire,
        AsyncClient(f"127.0.0.1:{wire.port}") as client,
    ):
        report = await client.prepare(ENTRIES, METRIC, immutable=True)
        assert report.pinned == f"{report.reference_set}@{report.corpus_digest}"
        assert report.provenance[METRIC].corpus_digest == report.corpus_digest
        again = await client.prepare(ENTRIES[::-1], METRIC, immutable=True)
        assert again.corpus_digest == report.corpus_digest, "the order makes another name and the same corpus"
        scores = await client.score([ITEM], METRIC, reference_set=report.pinned)
        (provenance,) = scores.provenance.values()
        assert provenance.corpus_digest == report.corpus_digest
        line = await client.score([ITEM], provenance.line)
        assert line.items[0].scores != {}, "a line asks for the corpus that it names"
        with pytest.raises(InvalidRequest, match="has the digest"):
            await client.score([ITEM], METRIC, reference_set=f"{report.reference_set}@{'0' * 32}")


async def test_a_set_that_cannot_be_whole_is_refused_before_it_is_sent() -> None:
    async with wire_server() as wire, AsyncClient(f"127.0.0.1:{wire.port}") as client:
        with pytest.raises(InvalidRequest, match=r"immutable: entries\[1\]\.references\[0\] is a set"):
            await client.prepare([ENTRIES[0], {"references": {"a"}}], METRIC, immutable=True)
        assert wire.engine.seals == {}
        with pytest.raises(InvalidRequest, match=r"entries\[1\]: references\[0\]: is blank.*must be complete"):
            await client.prepare([ENTRIES[0], {"references": [" "]}], METRIC, immutable=True)
        assert wire.engine.seals == {}
