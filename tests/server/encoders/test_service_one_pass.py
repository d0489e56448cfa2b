"""All that is wanted of a text comes from one pass of the encoder; token vectors are cached as sentence vectors are."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry
from tests.server.conftest import OpenBackends
from tests.support.servers.valkey import ValkeyServer

from gradewire_proto.choices import SmilePreset
from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure, Item, ScoredResult, Status
from gradewire_server.domain.needs import AnswerSource, Tier, TokenVectors
from gradewire_server.domain.ports import Embeddings, EmbedReply, TokensReply
from gradewire_server.metrics.common import EncoderParameters
from gradewire_server.metrics.encoder.bertscore import Bertscore, BertscoreParameters
from gradewire_server.metrics.encoder.sbert import Sbert
from gradewire_server.metrics.encoder.sfve import Sfve
from gradewire_server.metrics.smile.formula import SmileParameters
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.scoring import MetricRequest, Scorer
from gradewire_server.settings.engine import CacheConfig, ComputeConfig, DiskConfig, EngineConfig, RedisConfig

MODEL = "all-MiniLM-L6-v2"
LAYERS = (3, 4, 5, 6)
TEXT = "Zoë saw two cats."
SAME = 2e-4


def passes(registry: CollectorRegistry) -> int:
    """Texts that went through the encoder."""
    return int(registry.get_sample_value("gradewire_engine_batch_texts_sum", {"model": MODEL}) or 0)


async def tokens(engine: Backends, text: str, layer: int, tier: Tier = Tier.PREDICTION) -> TokenVectors:
    reply = await engine.ports.embeddings.embed_tokens("", [text], [tier], layer=layer)
    (item,) = reply.items
    assert isinstance(item, TokenVectors), item
    return item


def cosines(vectors: TokenVectors) -> NDArray[np.float32]:
    unit = vectors.tokens / np.linalg.norm(vectors.tokens, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T, np.float32)


async def test_sentence_and_all_layers_at_once_are_one_pass(open_backends: OpenBackends) -> None:
    registry = CollectorRegistry()
    engine = await open_backends(registry=registry)
    sentence, words, *layers = await asyncio.gather(
        engine.ports.embeddings.embed("", [TEXT], [Tier.PREDICTION]),
        *(tokens(engine, TEXT, layer) for layer in (0, *LAYERS)),
    )
    assert passes(registry) == 1
    for each in (words, *layers):
        assert np.array_equal(each.sentence, sentence.values[0])
    with_special = layers[-1]
    assert with_special.ids[[0, -1]].tolist() == [-1, -1]
    assert with_special.offsets[[0, -1]].tolist() == [[0, 0], [0, 0]]
    assert np.array_equal(with_special.tokens[1:-1], words.tokens), "the last layer, with and without special tokens"
    assert np.array_equal(with_special.ids[1:-1], words.ids)
    assert not np.allclose(layers[0].tokens, layers[1].tokens, atol=0.1)
    (ids,) = await engine.ports.embeddings.token_ids("", [TEXT])
    assert np.array_equal(ids, words.ids)


async def test_what_is_missing_is_computed_and_the_rest_is_not(open_backends: OpenBackends) -> None:
    registry = CollectorRegistry()
    engine = await open_backends(registry=registry)
    sentence = await engine.ports.embeddings.embed("", [TEXT], [Tier.PREDICTION])
    fifth = await tokens(engine, TEXT, 5)
    assert passes(registry) == 2, "token vectors were wanted after the pass"
    assert np.array_equal(fifth.sentence, sentence.values[0])
    await tokens(engine, TEXT, 5)
    await engine.ports.embeddings.embed("", [TEXT], [Tier.PREDICTION])
    assert passes(registry) == 2


async def test_whoever_comes_while_a_pass_is_under_way_gets_what_it_asked_for(open_backends: OpenBackends) -> None:
    engine = await open_backends(compute=ComputeConfig(workers=1))
    texts = [f"{TEXT} {number}" for number in range(40)]
    sentences = asyncio.create_task(engine.ports.embeddings.embed("", texts, [Tier.PREDICTION] * 40))
    replies = []
    for layer in LAYERS:
        await asyncio.sleep(0.003)
        replies.append(
            asyncio.create_task(engine.ports.embeddings.embed_tokens("", texts, [Tier.WINDOW] * 40, layer=layer))
        )
    values = (await sentences).values
    for reply in replies:
        for row, item in enumerate((await reply).items):
            assert isinstance(item, TokenVectors)
            assert np.array_equal(item.sentence, values[row])


async def test_alone_and_in_a_batch_the_tokens_are_the_same(open_backends: OpenBackends) -> None:
    alone, together = await open_backends(), await open_backends()
    texts = [TEXT, "no", "a much longer answer that takes the rest of the batch with it, and more", "一匹の犬"]
    reply = await together.ports.embeddings.embed_tokens("", texts, [Tier.WINDOW] * 4, layer=5)
    for text, item in zip(texts, reply.items, strict=True):
        assert isinstance(item, TokenVectors)
        assert np.abs(cosines(item) - cosines(await tokens(alone, text, 5))).max() < SAME


async def test_a_layer_that_is_no_output_is_an_error_that_names_those_that_are(open_backends: OpenBackends) -> None:
    engine = await open_backends()
    for layer in (2, 7, -1):
        (failure,) = (await engine.ports.embeddings.embed_tokens("", [TEXT], [Tier.WINDOW], layer=layer)).items
        assert isinstance(failure, Failure)
        assert failure.status is Status.INVALID_PARAMETER
        assert "3, 4, 5, 6" in failure.message


async def test_special_tokens_that_a_text_spells_out_are_special(open_backends: OpenBackends) -> None:
    item = await tokens(await open_backends(), "[SEP] yes [CLS]", 5)
    assert item.ids[[0, 1, 3, 4]].tolist() == [-1] * 4
    assert item.ids[2] > 0
    (ids,) = await (await open_backends()).ports.embeddings.token_ids("", ["[SEP] yes [CLS]"])
    assert ids.tolist() == [item.ids[2]]


@contextlib.asynccontextmanager
async def opened(cache: CacheConfig, minilm: Path) -> AsyncIterator[tuple[Backends, CollectorRegistry]]:
    registry = CollectorRegistry()
    engine = await Backends.open(EngineConfig(minilm, preload=("",), cache=cache), registry)
    yield engine, registry
    await engine.close()


@pytest.mark.parametrize("store", ["disk", "redis"])
async def test_references_outlive_the_process_and_predictions_do_not(
    store: str, minilm: Path, tmp_path: Path, valkey: ValkeyServer
) -> None:
    cache = (
        CacheConfig(disk=DiskConfig(tmp_path))
        if store == "disk"
        else CacheConfig(redis=RedisConfig(valkey.url, timeout_s=5))
    )
    long = "word " * 300
    async with opened(cache, minilm) as (engine, _):
        cold = await tokens(engine, TEXT, 5, Tier.REFERENCE)
        cold_long = await tokens(engine, long, 5, Tier.REFERENCE)
        warm = await tokens(engine, TEXT, 5, Tier.REFERENCE)
        await tokens(engine, "a prediction", 5)
    async with opened(cache, minilm) as (engine, registry):
        both, sentence = await asyncio.gather(
            engine.ports.embeddings.embed_tokens("", [TEXT, long], [Tier.REFERENCE] * 2, layer=5),
            engine.ports.embeddings.embed("", [TEXT], [Tier.REFERENCE]),
        )
        assert passes(registry) == 0
        assert AnswerSource.COMPUTED not in both.sources
        again, again_long = both.items
        assert isinstance(again, TokenVectors)
        assert isinstance(again_long, TokenVectors)
        assert again_long.truncated
        for one, other in ((cold, warm), (cold, again), (cold_long, again_long)):
            assert np.array_equal(one.tokens, other.tokens)
            assert np.array_equal(one.ids, other.ids)
            assert np.array_equal(one.offsets, other.offsets)
        assert np.abs(sentence.values[0] - cold.sentence).max() < 1e-6
        await tokens(engine, TEXT, 4, Tier.REFERENCE)
        await tokens(engine, "a prediction", 5)
        assert passes(registry) == 2, "another layer, and a prediction"


async def test_a_prediction_that_turns_out_to_be_a_reference_is_kept(minilm: Path, tmp_path: Path) -> None:
    cache = CacheConfig(disk=DiskConfig(tmp_path))
    async with opened(cache, minilm) as (engine, _):
        first = await tokens(engine, TEXT, 5, Tier.PREDICTION)
        await tokens(engine, TEXT, 5, Tier.REFERENCE)
    async with opened(cache, minilm) as (engine, registry):
        assert np.array_equal((await tokens(engine, TEXT, 5, Tier.REFERENCE)).tokens, first.tokens)
        assert passes(registry) == 0


class Asked:
    """Embeddings that note which texts are asked for."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self.token_ids = embeddings.token_ids
        self.texts: set[str] = set()

    async def embed(self, model: str, texts: Sequence[str], tiers: Sequence[Tier], **given: Any) -> EmbedReply:
        self.texts.update(texts)
        return await self._embeddings.embed(model, texts, tiers, **given)

    async def embed_tokens(self, model: str, texts: Sequence[str], tiers: Sequence[Tier], **given: Any) -> TokensReply:
        self.texts.update(texts)
        return await self._embeddings.embed_tokens(model, texts, tiers, **given)


async def test_metrics_of_one_request_share_their_passes(open_backends: OpenBackends) -> None:
    """At most 1.15 times the texts of the union are promised; here it is exactly the union."""
    items = [
        Item(str(i), f"what is number {i}?", (f"the number {i}", f"{i}", f"number {i}, of course"), prediction)
        for i, prediction in enumerate(
            ["one of the many answers that people give", "number 1", "2", "I would say that it is number 3, is it not?"]
        )
    ]
    requested: list[tuple[Any, Any]] = [
        (Smile(), SmileParameters()),
        (Sbert(), EncoderParameters()),
        (Sfve(), EncoderParameters()),
        (Bertscore(), BertscoreParameters()),
        (Bertscore(), BertscoreParameters(with_question=True)),
        (Smile(), SmileParameters(preset=SmilePreset.FAST)),
    ]

    registry = CollectorRegistry()
    ports = (await open_backends(registry=registry)).ports
    asked = Asked(ports.embeddings)
    ports = replace(ports, embeddings=asked)
    status = ports.encoders.status("")
    requests = [
        MetricRequest(metric, parameters.resolved(status.metadata), status.metadata) for metric, parameters in requested
    ]

    async def texts_of(*requests: MetricRequest) -> set[str]:
        asked.texts = set()
        results: list[ScoredResult] = []
        await Scorer(ports).score(items, requests, emit=lambda _item, _metric, scored: results.append(scored))
        assert all(scored.result.status is Status.OK for scored in results)
        return asked.texts

    together = await texts_of(*requests)
    computed = passes(registry)
    apart = [await texts_of(request) for request in requests]
    assert set().union(*apart) == together
    assert computed == len(together)
    assert sum(map(len, apart)) > 1.5 * computed, "they have texts in common"
