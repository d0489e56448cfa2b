"""What all metrics together cost the encoder, compared with the union of their texts.

`python -m benchmarks.research.shared_work [--data FILE]` runs every metric that needs the encoder over the same rows in
one request on a cold engine. It counts the texts and tokens that went through the encoder, by the engine's own
counters, and the distinct texts that the metrics asked for.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.common.rows import DEFAULT_DATA, read_rows, sample_rows
from prometheus_client import CollectorRegistry

from gradewire_models.repository.built import default_repository
from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure, Item
from gradewire_server.domain.needs import Corpus, Tier
from gradewire_server.domain.ports import Embeddings, EmbedReply, TokensReply
from gradewire_server.metrics.common import EncoderParameters
from gradewire_server.metrics.encoder.bertscore import Bertscore, BertscoreParameters
from gradewire_server.metrics.encoder.sbert import Sbert
from gradewire_server.metrics.encoder.sfve import Sfve
from gradewire_server.metrics.smile.metric import Smile
from gradewire_server.metrics.smile.parameters import SmileParameters, SmilePreset
from gradewire_server.scoring import MetricRequest, Scorer
from gradewire_server.settings.engine import EngineConfig

_SEED = 0
METRICS: dict[str, tuple[Any, Any]] = {
    "smile:v1": (Smile(), SmileParameters()),
    "smile:fast": (Smile(), SmileParameters(preset=SmilePreset.FAST)),
    "sbert": (Sbert(), EncoderParameters()),
    "sfve": (Sfve(), EncoderParameters()),
    "bertscore": (Bertscore(), BertscoreParameters()),
    "bertscore idf": (Bertscore(), BertscoreParameters(idf=Corpus.REQUEST)),
    "bertscore with_question": (Bertscore(), BertscoreParameters(with_question=True)),
}


class Asked:
    """Passes on to embeddings, and notes which texts are asked for."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self.token_ids, self.embed_roughly = embeddings.token_ids, embeddings.embed_roughly
        self.texts: set[str] = set()

    async def embed(self, model: str, texts: Sequence[str], tiers: Sequence[Tier], **given: Any) -> EmbedReply:
        """Notes the texts, then has them embedded."""
        self.texts.update(texts)
        return await self._embeddings.embed(model, texts, tiers, **given)

    async def embed_tokens(self, model: str, texts: Sequence[str], tiers: Sequence[Tier], **given: Any) -> TokensReply:
        """Notes the texts, then has their tokens embedded."""
        self.texts.update(texts)
        return await self._embeddings.embed_tokens(model, texts, tiers, **given)


async def run(items: Sequence[Item], names: Sequence[str]) -> tuple[int, int, int, int]:
    """Texts and real tokens through the encoder, texts asked for, and the tokens that those have."""
    registry = CollectorRegistry()
    engine = await Backends.open(EngineConfig(default_repository(), preload=("",)), registry)
    asked = Asked(engine.ports.embeddings)
    status = engine.ports.encoders.status("")
    assert not isinstance(status, Failure), status
    requests = [
        MetricRequest(metric, parameters.resolved(status.metadata), status.metadata)
        for metric, parameters in (METRICS[name] for name in names)
    ]
    await Scorer(replace(engine.ports, embeddings=asked)).score(
        items, requests, emit=lambda _item, _metric, _scored: None
    )
    texts = sorted(asked.texts)
    ids = await engine.ports.embeddings.token_ids("", texts)
    assert not isinstance(ids, Failure), ids
    labels = {"model": status.name}
    computed = registry.get_sample_value("gradewire_engine_batch_texts_sum", labels) or 0
    tokens = registry.get_sample_value("gradewire_engine_tokens_total", labels | {"kind": "real"}) or 0
    await engine.close()
    around = 2 * len(texts)
    return int(computed), int(tokens), len(texts), sum(map(len, ids)) + around


async def main() -> None:
    """Prints one line a metric and one for all together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--rows", type=int, default=64, help="items of the request")
    given = parser.parse_args()
    rows = sample_rows(read_rows(given.data), given.rows, _SEED)
    items = [Item(row["id"], row["question"], tuple(row["references"]), row["prediction"]) for row in rows]
    print(f"{len(items)} items; through the encoder, against the distinct texts asked for")
    for names in ([name] for name in METRICS):
        computed, tokens, _, _ = await run(items, names)
        print(f"{names[0]:<26} {computed:>6} texts {tokens:>8} tokens")
    computed, tokens, union, union_tokens = await run(items, list(METRICS))
    print(
        f"{'all together':<26} {computed:>6} texts {tokens:>8} tokens; union {union} texts {union_tokens} tokens: "
        f"ratio {computed / union:.3f} of texts, {tokens / union_tokens:.3f} of tokens"
    )


if __name__ == "__main__":
    asyncio.run(main())
