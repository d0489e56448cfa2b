"""Ports without a model: vectors are sums of hashed words, so equal words mean close vectors."""

import asyncio
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tests.support.engines.correctness_fits import stored_fit
from tests.support.judges.scripted import Script, judge_status

from gradewire_server.domain.items import Failure, Status, Timing
from gradewire_server.domain.judge import Choice, Choose, Generate, Generated
from gradewire_server.domain.metric import ModelMetadata, TokenLayer
from gradewire_server.domain.needs import (
    MOST_PIECES,
    AnswerSource,
    GradedTexts,
    PreparedAnswers,
    ReferenceEntries,
    Synonyms,
    Tier,
    TokenVectors,
)
from gradewire_server.domain.ports import EmbedReply, GradeReply, JudgeReply, ModelStatus, Ports, TokensReply
from gradewire_server.metrics.correctness.metric import VERSION

if TYPE_CHECKING:
    from gradewire_server.domain.metric import Calibration

DIMS = 48
_NOT_PREPARED = Failure(Status.NOT_PREPARED, "no entries; call References.Prepare")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def word_vector(word: str) -> NDArray[np.float32]:
    """A fixed direction for a word."""
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(DIMS).astype(np.float32)


def token_vectors(text: str, max_tokens: int) -> TokenVectors:
    """Word vectors of the first `max_tokens` tokens and their normalised sum."""
    spans = [match.span() for match in _TOKEN.finditer(text)]
    kept = spans[:max_tokens]
    tokens = np.array([word_vector(text[a:b].lower()) for a, b in kept], dtype=np.float32).reshape(-1, DIMS)
    tokens = tokens.astype(np.float16).astype(np.float32)
    summed = tokens.sum(axis=0) + 0.1 * word_vector("")  # never a zero vector
    rounded = (summed / np.linalg.norm(summed)).astype(np.float16).astype(np.float32)
    return TokenVectors(
        sentence=rounded / np.linalg.norm(rounded),
        tokens=tokens,
        offsets=np.array(kept, dtype=np.int32).reshape(-1, 2),
        ids=np.array([zlib.crc32(text[a:b].lower().encode()) & 0x7FFFFFFF for a, b in kept], dtype=np.int32),
        truncated=len(spans) > max_tokens,
    )


def with_special(vectors: TokenVectors, layer: int) -> TokenVectors:
    """The same as vectors of a hidden layer: a special token on either side, all shifted by what depends on it."""
    around = word_vector("[CLS]")[None], word_vector("[SEP]")[None]
    tokens = np.concatenate((around[0], vectors.tokens, around[1])) + layer * 0.1
    return TokenVectors(
        sentence=vectors.sentence,
        tokens=tokens.astype(np.float16).astype(np.float32),
        offsets=np.pad(vectors.offsets, ((1, 1), (0, 0))),
        ids=np.pad(vectors.ids, 1, constant_values=-1),
        truncated=vectors.truncated,
    )


def _share(reference: str, said: Sequence[str]) -> float:
    words = _TOKEN.findall(reference.lower())
    return sum(word in said for word in words) / max(1, len(words))


class ListedModels:
    """A ModelIndex over what `statuses` says.

    Args:
        statuses: All models, as they are now.
        missing: What is said of a name that is not among them, which `{}` stands for.
    """

    def __init__(self, statuses: Callable[[], Sequence[ModelStatus]], missing: str) -> None:
        self.statuses = statuses
        self._missing = missing

    def status(self, name: str) -> ModelStatus | Failure:
        for status in self.statuses():
            if status.name == name or (not name and status.is_default):
                return status
        return Failure(Status.MODEL_UNAVAILABLE, self._missing.format(name))


class HashEngine:
    """Stands behind all ports: `Scorer(engine.ports)`.

    Attributes:
        ports: What scoring and requests ask.
        calls: Every call so far: (kind, model, texts, tiers); kind is "embed", "tokens" or "prepared".
        computed: How often each (kind, text) was computed; a text is computed once, then remembered.
        failures: Texts that fail, with their failure.
        before: Awaited at the start of each embed, tokens and judge call, with the model's name: a place to hold calls.
        prepared: Synthetic answers by (reference set, question, reference).
        correctness: By model, the stored fit of metric `correctness`.
        correctness_graded: By model, the stored fit of metric `correctness` with the first grader.
        graders: Names of the graders that are there.
        auto: By model, the stored fits of metric `auto`.
        digests: By model; another one put in is another model from then on.
        corpora: Entries by reference set; changing one is noticed as growing.
        seals: By reference set, the digest that it is to have.
        grade_failures: Answers that a grader fails on, with their failure.
        graded: Items of each call of a grader, which gives the share of the reference's words as a logit.
        known_synonyms: By word; None: WordNet is not there.
        script: What the judges say, and what they were asked; an equal need is answered from memory.
        judge_deadlines_s: Of every judge call.
    """

    def __init__(
        self,
        *,
        models: Sequence[str] = ("hash",),
        judges: Sequence[str] = ("scripted",),
        graders: Sequence[str] = ("words",),
        max_tokens: int = 64,
    ) -> None:
        self._names = tuple(models)
        self._judges = tuple(judges)
        self.graders = tuple(graders)
        self.grade_failures: dict[str, Failure] = {}
        self.graded: list[tuple[GradedTexts, ...]] = []
        self.script = Script()
        self.judge_deadlines_s: list[float | None] = []
        self._said: dict[Choose | Generate, Choice | Generated] = {}
        self._max_tokens = max_tokens
        self._seen: set[tuple[str, str, str]] = set()
        self.calls: list[tuple[str, str, tuple[str, ...], tuple[Tier, ...]]] = []
        self.computed: Counter[tuple[str, str]] = Counter()
        self.failures: dict[str, Failure] = {}
        self.before: Callable[[str], asyncio.Future[None] | None] = lambda _model: None
        self.prepared: dict[tuple[str, str, str], str] = {}
        self.corpora: dict[str, set[tuple[str, tuple[str, ...]]]] = {}
        self.seals: dict[str, str] = {}
        self.known_synonyms: dict[str, frozenset[str]] | None = {}
        self.correctness: dict[str, str] = {}
        self.correctness_graded: dict[str, Calibration] = {}
        self.auto: dict[str, tuple[Calibration, ...]] = {}
        self.versions: dict[str, int] = {}
        self.unreadable: tuple[tuple[str, str], ...] = ()
        self.running = 0
        self.ports = Ports(
            embeddings=self,
            encoders=ListedModels(self.encoder_statuses, "{} is not built"),
            judges=self,
            judge_models=ListedModels(self.judge_statuses, "there is no judge {!r} here"),
            reference_sets=self,
            lexicon=self,
            graders=self,
            grader_models=ListedModels(self.grader_statuses, "there is no grader {!r} here"),
        )
        self.digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in (*models, *judges, *graders)}

    async def embed(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        del deadline_s
        items, sources = await self._look("embed", model, texts, tiers)
        values = np.zeros((len(texts), DIMS), dtype=np.float32)
        for row, item in enumerate(items):
            if isinstance(item, TokenVectors):
                values[row] = item.sentence
        return EmbedReply(
            values=values,
            truncated=np.array([isinstance(item, TokenVectors) and item.truncated for item in items], dtype=np.bool_),
            sources=sources,
            timing=Timing(queue_s=0.25, inference_s=1.0),
            failures={row: item for row, item in enumerate(items) if isinstance(item, Failure)},
        )

    async def embed_roughly(
        self, model: str, texts: Sequence[str], tiers: Sequence[Tier], *, deadline_s: float | None = None
    ) -> EmbedReply:
        return await self.embed(model, texts, tiers, deadline_s=deadline_s)

    async def embed_tokens(
        self,
        model: str,
        texts: Sequence[str],
        tiers: Sequence[Tier],
        *,
        layer: int = 0,
        deadline_s: float | None = None,
    ) -> TokensReply:
        del deadline_s
        items, sources = await self._look(f"tokens {layer}" if layer else "tokens", model, texts, tiers)
        if layer:
            items = [item if isinstance(item, Failure) else with_special(item, layer) for item in items]
        return TokensReply(items=tuple(items), sources=sources, timing=Timing(tokenize_s=0.5))

    async def grade(self, model: str, items: Sequence[GradedTexts], *, deadline_s: float | None = None) -> GradeReply:
        """Logits by the share of the reference's words that the answer has, from -3 to 3; an item is computed once."""
        del deadline_s
        assert len(set(items)) == len(items), "items of a call are distinct"
        model = model.partition("@")[0]
        assert model in self.graders, f"there is no grader {model!r}"
        self.graded.append(tuple(items))
        await asyncio.sleep(0)
        answers = [_TOKEN.findall(answer.lower()) for _, _, answer in items]
        logits = [3 * (2 * _share(reference, said) - 1) for (_, reference, _), said in zip(items, answers, strict=True)]
        failures = {
            row: self.grade_failures[item[2]] for row, item in enumerate(items) if item[2] in self.grade_failures
        }
        return GradeReply(
            logits=np.array(logits, np.float32),
            truncated=np.array([len(said) > self._max_tokens for said in answers], np.bool_),
            pieces=np.array([min(MOST_PIECES, 1 + len(said) // self._max_tokens) for said in answers], np.int32),
            sources=np.full(len(items), AnswerSource.COMPUTED, np.uint8),
            timing=Timing(inference_s=0.5),
            failures=failures,
        )

    async def _look(
        self, kind: str, model: str, texts: Sequence[str], tiers: Sequence[Tier]
    ) -> tuple[list[TokenVectors | Failure], NDArray[np.uint8]]:
        assert len(set(texts)) == len(texts) == len(tiers), "texts of a call are distinct, with one tier each"
        assert all(text.strip() for text in texts), "a blank text was asked for"
        model = model.partition("@")[0]
        self.calls.append((kind, model, tuple(texts), tuple(tiers)))
        self.running += 1
        try:
            gate = self.before(model)
            await (gate if gate is not None else asyncio.sleep(0))
        finally:
            self.running -= 1
        sources = np.full(len(texts), AnswerSource.MEMORY, dtype=np.uint8)
        items: list[TokenVectors | Failure] = []
        for row, text in enumerate(texts):
            if text in self.failures:
                items.append(self.failures[text])
                sources[row] = AnswerSource.COMPUTED
                continue
            if (kind, model, text) not in self._seen:
                self._seen.add((kind, model, text))
                self.computed[kind, text] += 1
                sources[row] = AnswerSource.COMPUTED
            items.append(token_vectors(text, self._max_tokens))
        return items, sources

    async def prepared_answers(
        self, reference_set: str, question: str, references: Sequence[str]
    ) -> PreparedAnswers | Failure:
        self.calls.append(("prepared", "", tuple(references), ()))
        await asyncio.sleep(0)
        return tuple(self.prepared.get((reference_set, question, reference)) for reference in references)

    async def store_prepared(self, reference_set: str, question: str, answers: Mapping[str, str]) -> Failure | None:
        await asyncio.sleep(0)
        for reference, answer in answers.items():
            if answer in self.failures:
                return self.failures[answer]
            if self.prepared.get((reference_set, question, reference), answer) != answer:
                return Failure(Status.INVALID_INPUT, "another answer is there")
            self.prepared[reference_set, question, reference] = answer
        return None

    async def token_ids(self, model: str, texts: Sequence[str]) -> Sequence[NDArray[np.int32]] | Failure:
        self.calls.append(("ids", model.partition("@")[0], tuple(texts), ()))
        await asyncio.sleep(0)
        failed = [self.failures[text] for text in texts if text in self.failures]
        return failed[0] if failed else [token_vectors(text, self._max_tokens).ids for text in texts]

    async def synonyms(self, words: Sequence[str]) -> Synonyms | Failure:
        self.calls.append(("synonyms", "", tuple(words), ()))
        await asyncio.sleep(0)
        if self.known_synonyms is None:
            return Failure(Status.MODEL_UNAVAILABLE, "WordNet is not here; install wordnet-base")
        return {word: self.known_synonyms.get(word, frozenset()) for word in words}

    async def entries(self, reference_set: str) -> ReferenceEntries | Failure:
        self.calls.append(("entries", "", (reference_set,), ()))
        await asyncio.sleep(0)
        return tuple(self.corpora[reference_set]) if self.corpora.get(reference_set) else _NOT_PREPARED

    async def entries_revision(self, reference_set: str) -> str | Failure:
        await asyncio.sleep(0)
        entries = self.corpora.get(reference_set)
        return str(len(entries)) if entries else _NOT_PREPARED

    async def seal_of(self, reference_set: str) -> str | Failure:
        await asyncio.sleep(0)
        return self.seals.get(reference_set, "")

    async def seal(self, reference_set: str, digest: str) -> Failure | None:
        await asyncio.sleep(0)
        taken = self.seals.setdefault(reference_set, digest) != digest
        return Failure(Status.INVALID_INPUT, "reference_set: is immutable with other content") if taken else None

    async def store_entries(self, reference_set: str, entries: ReferenceEntries, *, seal: str = "") -> Failure | None:
        await asyncio.sleep(0)
        if self.seals.get(reference_set, "") != seal:
            return Failure(Status.INVALID_INPUT, "reference_set: is immutable")
        failed = [self.failures[text] for _, references in entries for text in references if text in self.failures]
        if failed:
            return failed[0]
        self.corpora.setdefault(reference_set, set()).update(entries)
        return None

    def encoder_statuses(self) -> Sequence[ModelStatus]:
        return tuple(
            ModelStatus(
                name=name,
                digest=self.digests.get(name) or hashlib.sha256(name.encode()).hexdigest(),
                state="loaded",
                message="",
                how_to_get="",
                is_default=name == self._names[0],
                dims=DIMS,
                max_tokens=self._max_tokens,
                licence="Apache-2.0",
                precision="fp32-cpu",
                metadata=ModelMetadata(
                    calibrations=(
                        *self.auto.get(name, ()),
                        *(
                            stored_fit(self.correctness[name], version=self.versions.get("correctness", VERSION))
                            if name in self.correctness
                            else ()
                        ),
                        *([self.correctness_graded[name]] if name in self.correctness_graded else ()),
                    ),
                    unreadable=self.unreadable,
                    token_layers=(TokenLayer(1, (0.5, 0.5, 0.5)), TokenLayer(2)),
                    bertscore_layer=1,
                    digest=self.digests.get(name) or hashlib.sha256(name.encode()).hexdigest(),
                ),
            )
            for name in self._names
        )

    def grader_statuses(self) -> Sequence[ModelStatus]:
        return tuple(
            ModelStatus(
                name=name,
                digest=self.digests[name],
                state="loaded",
                is_default=name == self.graders[0],
                dims=1,
                max_tokens=256,
                licence="Apache-2.0",
                precision="fp32-cpu",
                kind="grader",
                metadata=ModelMetadata(digest=self.digests[name], temperature=2.0),
            )
            for name in self.graders
        )

    async def choose(self, need: Choose, *, deadline_s: float | None = None) -> JudgeReply[Choice]:
        known = await self._turn(need, deadline_s)
        if isinstance(known, Choice):
            return JudgeReply(known, AnswerSource.MEMORY, Timing())
        answer = self.script.choose(need)
        if isinstance(answer, Choice):
            self._said[need] = answer
        return JudgeReply(answer, AnswerSource.COMPUTED, Timing(queue_s=0.25, inference_s=0.5))

    async def generate(self, need: Generate, *, deadline_s: float | None = None) -> JudgeReply[Generated]:
        known = await self._turn(need, deadline_s)
        if isinstance(known, Generated):
            return JudgeReply(known, AnswerSource.MEMORY, Timing())
        answer = self.script.generate(need)
        if isinstance(answer, Generated):
            self._said[need] = answer
        return JudgeReply(answer, AnswerSource.COMPUTED, Timing(queue_s=0.25, inference_s=2.0))

    async def _turn(self, need: Choose | Generate, deadline_s: float | None) -> Choice | Generated | None:
        self.judge_deadlines_s.append(deadline_s)
        name = need.model.partition("@")[0] or self._judges[0]
        assert name in self._judges, f"there is no judge {name!r}"
        self.running += 1
        try:
            gate = self.before(name)
            await (gate if gate is not None else asyncio.sleep(0))
        finally:
            self.running -= 1
        return self._said.get(need)

    def judge_statuses(self) -> Sequence[ModelStatus]:
        return tuple(
            judge_status(name, digest=self.digests[name], is_default=name == self._judges[0]) for name in self._judges
        )
