"""A model in Triton that is not the one described here is refused, and both are named."""

import asyncio
import itertools
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry
from tests.support.models.tiny_models import WORDS, make_package
from tests.support.servers.triton import TritonServer

from gradewire_models.bf16 import BF16_CLASS
from gradewire_models.build.install import build_model
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_models.repository.config import ServedModel, served_from_file
from gradewire_server.backends import Backends
from gradewire_server.domain.items import Failure, Status
from gradewire_server.domain.needs import AnswerSource, Tier, TokenVectors
from gradewire_server.encoders.library import NotNowError, UnusableError
from gradewire_server.encoders.triton_source import check_arithmetic, check_catalog, check_served
from gradewire_server.settings.engine import EngineConfig, TritonConfig

MODEL = "all-MiniLM-L6-v2"


@pytest.fixture
def model(minilm: Path, tmp_path: Path) -> BuiltModel:
    (tmp_path / MODEL).mkdir()
    for name in ("config.pbtxt", "tokenizer.json"):
        shutil.copy(minilm / MODEL / name, tmp_path / MODEL)
    return load_built(tmp_path, MODEL, graph=False)


def test_what_equals_the_description_is_trusted(model: BuiltModel) -> None:
    check_served(model, served_from_file(model.directory / "config.pbtxt"))
    check_catalog(model)


def test_a_model_in_bf16_is_for_the_embedded_engine(model: BuiltModel) -> None:
    check_arithmetic(model)
    with pytest.raises(UnusableError, match=rf"which Triton does not support\. .*--backend embedded, or use {MODEL}$"):
        check_arithmetic(replace(model, numeric_class=BF16_CLASS, base=MODEL))


def facts(name: str, value: str) -> Callable[[ServedModel], ServedModel]:
    return lambda served: replace(served, facts={**served.facts, name: value})


def tensor(name: str, value: str) -> Callable[[ServedModel], ServedModel]:
    return lambda served: replace(served, tensors={**served.tensors, name: value})


def runs_on(*kinds: str) -> Callable[[ServedModel], ServedModel]:
    return lambda served: replace(served, kinds=frozenset(kinds))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (facts("digest", "f" * 64), ["digest", "f" * 64, "{digest}"]),
        (facts("fingerprint", "7"), ["fingerprint", "7 in Triton", "{fingerprint}"]),
        (lambda served: replace(served, facts={}), ["digest none", "{digest}"]),
        (
            tensor("output sentence_embedding", "TYPE_FP32[768]"),
            ["output sentence_embedding", "TYPE_FP32[768]", "TYPE_FP32[384]"],
        ),
        (tensor("output sentence_embedding", "TYPE_FP16[384]"), ["TYPE_FP16[384]", "TYPE_FP32[384]"]),
        (tensor("input input_ids", "TYPE_INT32[-1]"), ["input input_ids", "TYPE_INT32[-1]", "TYPE_INT64[-1]"]),
        (tensor("input token_type_ids", "TYPE_INT64[-1]"), ["input token_type_ids", "nothing in the model repository"]),
        (
            lambda served: replace(served, tensors={k: v for k, v in served.tensors.items() if "ids" not in k}),
            ["input input_ids", "nothing in Triton"],
        ),
        (lambda served: replace(served, max_batch_size=3), ["batches of 3 in Triton"]),
        (runs_on("KIND_GPU"), ["runs on KIND_GPU", "fp32-cpu requires KIND_CPU", f"gradewire models build {MODEL}"]),
        (runs_on("KIND_CPU", "KIND_GPU"), ["runs on KIND_CPU and KIND_GPU"]),
        (runs_on("KIND_AUTO"), ["runs on KIND_AUTO"]),
        (runs_on(), ["runs on no device"]),
        (lambda served: replace(served, accelerators="openvino"), ["the accelerators openvino in Triton, but none in"]),
    ],
)
def test_any_difference_is_an_error_that_names_both(
    model: BuiltModel, change: Callable[[ServedModel], ServedModel], words: list[str]
) -> None:
    served = change(served_from_file(model.directory / "config.pbtxt"))
    with pytest.raises(NotNowError) as caught:
        check_served(model, served)
    assert caught.value.failure.status is Status.MODEL_UNAVAILABLE
    for word in words:
        word = word.format(digest=model.digest, fingerprint=model.fingerprint)  # noqa: PLW2901 - filled in
        assert word in caught.value.failure.message
    assert str(model.directory) not in caught.value.failure.message, "it goes to remote callers"


def test_a_model_for_gpus_is_not_taken_from_a_cpu(model: BuiltModel) -> None:
    served = served_from_file(model.directory / "config.pbtxt")
    for_gpus = replace(model, numeric_class="fp32-cuda")
    check_served(for_gpus, runs_on("KIND_GPU")(served))
    with pytest.raises(NotNowError) as caught:
        check_served(for_gpus, served)
    assert "runs on KIND_CPU" in caught.value.failure.message


def test_a_digest_that_is_not_the_catalogs_is_an_error_that_names_both(model: BuiltModel) -> None:
    with pytest.raises(NotNowError) as caught:
        check_catalog(replace(model, digest="e" * 64))
    message = caught.value.failure.message
    assert "e" * 64 in message
    assert load_catalog()[MODEL].digest in message
    assert f"gradewire models build {MODEL}" in message


def test_a_model_that_the_catalog_does_not_list_is_not_compared_with_it(model: BuiltModel) -> None:
    check_catalog(replace(model, name="our-own", digest="e" * 64))


MINILM = "all-MiniLM-L6-v2"
TINY = "tiny-bert"
TEXTS = [
    "Paris",
    "the capital of France is Paris, of course",
    "no",
    "Zoë saw two cats.",
    "一匹の犬",
    "word " * 300,
    *(f"{'window ' * (number % 23)}number {number}" for number in range(60)),
]


_SAME = 2e-3
"""Largest difference between elements of one vector computed twice, each rounded to float16."""


def gap(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(np.abs(one - other).max())


def windows(count: int) -> list[Tier]:
    return [Tier.WINDOW] * count


@pytest.fixture
async def both(minilm: Path, triton: TritonServer) -> AsyncIterator[tuple[Backends, Backends]]:
    config = EngineConfig(minilm, preload=("",), triton=TritonConfig(triton.url))
    remote = await Backends.open(config, CollectorRegistry())
    local = await Backends.open(EngineConfig(minilm, preload=("",)), CollectorRegistry())
    yield remote, local
    await remote.close()
    await local.close()


async def test_vectors_are_the_embedded_engines(both: tuple[Backends, Backends]) -> None:
    remote, local = both
    assert remote.ports.encoders.status("") == local.ports.encoders.status("")
    sentences = [await engine.ports.embeddings.embed("", TEXTS, windows(len(TEXTS))) for engine in both]
    for reply in sentences:
        assert not reply.failures
        assert set(reply.sources) == {AnswerSource.COMPUTED}
    assert gap(sentences[0].values, sentences[1].values) < _SAME
    assert np.einsum("ij,ij->i", sentences[0].values, sentences[1].values).min() > 1 - 1e-5
    assert np.array_equal(sentences[0].truncated, sentences[1].truncated)
    tokens = [await engine.ports.embeddings.embed_tokens("", TEXTS[:20], windows(20)) for engine in both]
    for there, here in zip(tokens[0].items, tokens[1].items, strict=True):
        assert isinstance(there, TokenVectors)
        assert isinstance(here, TokenVectors)
        assert np.array_equal(there.offsets, here.offsets)
        assert np.abs(there.tokens - here.tokens).max() < 2e-2  # float16 steps of values around 10
    again = await remote.ports.embeddings.embed("", TEXTS, windows(len(TEXTS)))
    assert set(again.sources) == {AnswerSource.MEMORY}
    assert np.array_equal(again.values, sentences[0].values)


async def test_token_vectors_of_a_layer_are_the_embedded_engines(both: tuple[Backends, Backends]) -> None:
    texts = ["Zoë saw two cats.", "no", "word " * 300]
    triton, embedded = [await engine.ports.embeddings.embed_tokens("", texts, windows(3), layer=5) for engine in both]
    for one, other in zip(triton.items, embedded.items, strict=True):
        assert isinstance(one, TokenVectors)
        assert isinstance(other, TokenVectors)
        assert np.array_equal(one.ids, other.ids)
        assert np.array_equal(one.offsets, other.offsets)
        assert np.allclose(one.tokens, other.tokens, atol=5e-3)  # float16 of values of some units


async def test_a_text_is_computed_once_however_many_ask(both: tuple[Backends, Backends], triton: TritonServer) -> None:
    engine = both[0]
    texts = [f"asked for by many, number {number}" for number in range(12)]
    before = triton.inference_count(MINILM)
    replies = await asyncio.gather(*(engine.ports.embeddings.embed("", texts, windows(12)) for _ in range(5)))
    triton.wait_for_inference_count(MINILM, before + 12)
    assert triton.inference_count(MINILM) - before == 12
    assert all(np.array_equal(reply.values, replies[0].values) for reply in replies)
    sources = np.concatenate([reply.sources for reply in replies]).tolist()
    assert (sources.count(AnswerSource.COMPUTED), sources.count(AnswerSource.JOINED)) == (12, 48)


async def test_cancelled_calls_take_nothing_from_others(both: tuple[Backends, Backends]) -> None:
    engine, unhurried = both
    asked = [[f"shared text {(start + number) % 40}" for number in range(10)] for start in range(0, 40, 5)]
    tasks = [asyncio.create_task(engine.ports.embeddings.embed("", texts, windows(10))) for texts in asked]
    await asyncio.sleep(0.02)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.wait(tasks)
    for task, texts in list(zip(tasks, asked, strict=True))[1::2]:
        reply = task.result()
        assert not reply.failures
        expected = await unhurried.ports.embeddings.embed("", texts, windows(10))
        assert np.einsum("ij,ij->i", reply.values, expected.values).min() > 1 - 1e-5


async def test_closing_answers_every_open_call(minilm: Path, triton: TritonServer) -> None:
    config = EngineConfig(minilm, preload=("",), triton=TritonConfig(triton.url))
    engine = await Backends.open(config, CollectorRegistry())
    calls = [
        asyncio.create_task(
            engine.ports.embeddings.embed("", [f"{call} {number} of many" for number in range(150)], windows(150))
        )
        for call in range(3)
    ]
    await asyncio.sleep(0.05)
    await engine.close()
    for reply in await asyncio.wait_for(asyncio.gather(*calls), 10):
        assert {failure.status for failure in reply.failures.values()} <= {Status.UNAVAILABLE}


async def test_triton_alone_needs_no_onnxruntime_here(minilm: Path, triton: TritonServer) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from prometheus_client import CollectorRegistry\n"
        "from gradewire_server.domain.needs import Tier\n"
        "from gradewire_server.settings.engine import EngineConfig\n"
        "from gradewire_server.settings.engine import TritonConfig\n"
        "from gradewire_server.backends import Backends\n"
        "async def main():\n"
        f"    config = EngineConfig(Path({str(minilm)!r}), triton=TritonConfig({triton.url!r}))\n"
        "    engine = await Backends.open(config, CollectorRegistry())\n"
        "    reply = await engine.ports.embeddings.embed('', ['a text'], [Tier.WINDOW])\n"
        "    await engine.close()\n"
        "    return reply.failures\n"
        "failures = asyncio.run(main())\n"
        "sys.exit(str(failures) if failures else 'onnxruntime' if 'onnxruntime' in sys.modules else 0)"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert (process.returncode, said.decode()) == (0, "")


@dataclass(frozen=True)
class Models:
    """Two models of one name, each in a repository of its own."""

    repositories: tuple[Path, Path]
    digests: tuple[str, str]

    async def vectors(self, digest: str, texts: list[str]) -> NDArray[np.float32]:
        """What the embedded engine makes of texts with the model of a digest."""
        repository = self.repositories[self.digests.index(digest)]
        engine = await Backends.open(EngineConfig(repository, default_model=TINY), CollectorRegistry())
        reply = await engine.ports.embeddings.embed("", texts, windows(len(texts)))
        await engine.close()
        assert not reply.failures
        return reply.values


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    root = tmp_path_factory.mktemp("models")
    repositories = []
    for seed in (0, 1):
        package = make_package(root / f"package{seed}", "bert", seed=seed)
        repositories.append(root / f"repository{seed}")
        build_model(package.model, repositories[-1], wheels=package.wheels)
    digests = [load_built(repository, TINY).digest for repository in repositories]
    return Models((repositories[0], repositories[1]), (digests[0], digests[1]))


@dataclass
class Shape:
    """A Triton server and an engine over one repository that a test may change."""

    repository: Path
    triton: TritonServer
    engine: Backends
    registry: CollectorRegistry

    def replace(self, other: Path, *, next_version: bool = False) -> None:
        """Puts another model of the name into the repository, with its graph in the same version folder or the next."""
        target = self.repository / TINY
        shutil.rmtree(target)
        shutil.copytree(other / TINY, target)
        if next_version:
            (target / "1").rename(target / "2")


@pytest.fixture
def tiny_server(tmp_path: Path, models: Models) -> Iterator[tuple[Path, TritonServer]]:
    repository = tmp_path / "repository"
    shutil.copytree(models.repositories[0], repository)
    with TritonServer(tmp_path / "triton", repository) as server:
        yield repository, server


OpenShape = Callable[[], Awaitable[Shape]]


@pytest.fixture
async def shape(tiny_server: tuple[Path, TritonServer]) -> AsyncIterator[Shape]:
    async with opened(*tiny_server) as shape:
        yield shape


@asynccontextmanager
async def opened(repository: Path, server: TritonServer) -> AsyncIterator[Shape]:
    registry = CollectorRegistry()
    triton = TritonConfig(server.url, poll_s=0.5)
    config = EngineConfig(repository, default_model=TINY, preload=("",), triton=triton)
    engine = await Backends.open(config, registry)
    yield Shape(repository, server, engine, registry)
    await engine.close()


async def until(condition: Callable[[], bool], limit_s: float = 30) -> None:
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


def digest_of(engine: Backends) -> str:
    status = engine.ports.encoders.status("")
    return "" if isinstance(status, Failure) else status.digest


@pytest.mark.parametrize("next_version", [False, True], ids=["in place", "next version"])
async def test_a_model_that_is_replaced_under_load_is_followed_and_never_mixed(
    shape: Shape, models: Models, *, next_version: bool
) -> None:
    before, after = models.digests
    assert digest_of(shape.engine) == before
    fresh = (" ".join(words) for words in itertools.permutations(WORDS[4:], 3))  # never in the cache
    seen: dict[str, dict[str, NDArray[np.float32]]] = {before: {}, after: {}}
    stop = asyncio.Event()

    async def traffic() -> None:
        while not stop.is_set():
            digest = digest_of(shape.engine)
            texts = list(itertools.islice(fresh, 20))
            reply = await shape.engine.ports.embeddings.embed(f"{TINY}@{digest}", texts, windows(20))
            for position, text in enumerate(texts):
                failure = reply.failures.get(position)
                if failure is None:
                    seen[digest][text] = reply.values[position]
                else:
                    assert failure.status is Status.UNAVAILABLE
                    assert "try again" in failure.message

    running = [asyncio.create_task(traffic()) for _ in range(3)]
    await until(lambda: len(seen[before]) > 100)
    shape.replace(models.repositories[1], next_version=next_version)
    await asyncio.to_thread(shape.triton.load, TINY)
    await until(lambda: len(seen[after]) > 100)
    stop.set()
    await asyncio.gather(*running)
    # Whenever it was: the vector of a text is the one of the model that was named.
    for digest, other in ((before, after), (after, before)):
        texts, found = list(seen[digest]), np.stack(list(seen[digest].values()))
        assert gap(found, await models.vectors(digest, texts)) < _SAME
        assert np.abs(found - await models.vectors(other, texts)).max(axis=1).min() > 10 * _SAME
    assert digest_of(shape.engine) == after
    assert shape.engine.health().models == {TINY: True}
    late = await shape.engine.ports.embeddings.embed(f"{TINY}@{before}", ["w1"], windows(1))
    assert late.failures[0].status is Status.UNAVAILABLE
    assert "replaced" in late.failures[0].message
    switches = shape.registry.get_sample_value("gradewire_engine_triton_model_switches_total", {"model": TINY})
    assert switches == 1


async def test_a_model_that_only_triton_knows_is_refused_with_both_digests_until_it_lies_here_too(
    shape: Shape, models: Models, tmp_path: Path
) -> None:
    replica = tmp_path / "replica"
    shutil.copytree(models.repositories[0], replica)
    (replica / TINY / "1" / "model.onnx").unlink()  # a replica needs description and tokenizer alone
    async with opened(replica, shape.triton) as apart:
        assert apart.engine.health().models == {TINY: True}
        shape.replace(models.repositories[1])
        await asyncio.to_thread(shape.triton.load, TINY)
        await until(lambda: not apart.engine.health().models[TINY])
        await until(lambda: "digest" in apart.engine.health().troubles.get(TINY, ""))
        trouble = apart.engine.health().troubles[TINY]
        assert all(digest in trouble for digest in models.digests)
        refused = apart.engine.ports.encoders.status("")
        assert isinstance(refused, Failure)
        assert refused.message == trouble
        apart.replace(models.repositories[1])
        await until(lambda: apart.engine.health().models[TINY])
        assert digest_of(apart.engine) == models.digests[1]


async def test_what_triton_lacks_at_start_is_loaded_or_waited_for(
    tiny_server: tuple[Path, TritonServer], models: Models
) -> None:
    repository, server = tiny_server
    server.unload(TINY)
    async with opened(repository, server) as shape:
        assert shape.engine.health().models == {TINY: False}
        reply = await shape.engine.ports.embeddings.embed("", ["w1"], windows(1))
        assert reply.failures[0].status is Status.UNAVAILABLE
        await until(lambda: shape.engine.health().models[TINY])
        assert digest_of(shape.engine) == models.digests[0]
        labels = {"model": TINY, "outcome": "done"}
        assert shape.registry.get_sample_value("gradewire_engine_triton_repairs_total", labels) == 1
