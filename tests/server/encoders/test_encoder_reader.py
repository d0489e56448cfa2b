"""The reader of a run gives token vectors to calls that joined after tokenization, and counts each text's wait."""

import asyncio
from pathlib import Path

import numpy as np
from prometheus_client import CollectorRegistry, Histogram

from gradewire_models.repository.built import load_built
from gradewire_server.domain.needs import Tier
from gradewire_server.encoders.encoder import RunOutput, open_tokenizer, run_reader
from gradewire_server.encoders.pending import PendingText, PendingTexts, VectorCall
from gradewire_server.encoders.prometheus import CountedHistogram, EncoderTelemetry, ModelTelemetry
from gradewire_server.storage.codec import SENTENCE, decode_tokens


def test_token_vectors_requested_after_tokenization_come_from_the_same_run(minilm: Path) -> None:
    model = load_built(minilm, "all-MiniLM-L6-v2")
    tokenizer = open_tokenizer(model)
    reader = run_reader(model, tokenizer, ModelTelemetry(EncoderTelemetry(CollectorRegistry()), model.name))
    early, late, table = VectorCall(1, deadline_s=None), VectorCall(1, deadline_s=None), PendingTexts()
    started = table.subscribe(early, SENTENCE, [(b"1", 0)], ["two cats"], [Tier.PREDICTION])
    texts = [*started, PendingText(b"2", "a dog", Tier.PREDICTION)]
    for text, tokens in zip(texts, tokenizer.encode([text.text for text in texts]), strict=True):
        assert tokens.offsets is None
        text.tokens, text.length = tokens, len(tokens.ids)
    table.join(b"1", late, 0, 3, Tier.PREDICTION)
    assert reader.layers_for(texts) == [3]
    vectors = np.random.default_rng(0).standard_normal((2, 8, model.dims)).astype(np.float32)
    first, second = reader.make_blobs(texts, RunOutput(vectors[:, 0], {3: vectors}))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert set(first) == {SENTENCE, 3}
    assert set(second) == {SENTENCE}
    found = decode_tokens(first[3], model.dims)
    assert found.offsets.tolist() == [[0, 0], [0, 3], [4, 8], [0, 0]]
    assert np.allclose(found.tokens, vectors[0, :4], atol=5e-3)


async def test_the_histogram_counts_as_the_librarys_own_does() -> None:
    bounds, registry = (0.5, 1.0, 2.0), CollectorRegistry()
    ours = CountedHistogram("w", "W.", bounds)
    theirs = Histogram("v", "W.", ("model",), buckets=bounds, registry=CollectorRegistry())
    registry.register(ours)
    ours.add_model("m")
    assert registry.get_sample_value("w_count", {"model": "m"}) == 0
    for value, times in ((0.0, 3), (0.5, 1), (0.6, 2), (2.0, 1), (2.5, 4)):
        await asyncio.to_thread(ours.observe, "m", value, times)
        for _ in range(times):
            theirs.labels("m").observe(value)
    (own,), (known,) = ours.collect(), theirs.collect()
    expected = {
        (sample.name[1:], *sample.labels.items()): sample.value
        for sample in known.samples
        if not sample.name.endswith("_created")
    }
    assert {(sample.name[1:], *sample.labels.items()): sample.value for sample in own.samples} == expected
