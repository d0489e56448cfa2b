"""Windows chosen in 8 bits: scores are those of fp32, and where there is no graph, fp32 chooses."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.server.conftest import OpenBackends
from tests.support.examples import example_count
from tests.support.models.tiny_models import make_package

from gradewire import Scorer
from gradewire_models.build.install import build_model
from gradewire_models.build.quality import own_rows
from gradewire_models.processor import has_vnni
from gradewire_models.repository.built import BuiltModel, load_built
from gradewire_server.domain.needs import AnswerSource, Tier
from gradewire_server.encoders import local, window_graphs
from gradewire_server.encoders.encoder import RunOutput
from gradewire_server.encoders.local import WindowSession
from gradewire_server.encoders.window_graphs import FOLDER, NoGraphError, provide_graph, reason_without_graph
from gradewire_server.settings.engine import CacheConfig, ComputeConfig, DiskConfig
from gradewire_server.settings.server import Settings

MODEL = "all-MiniLM-L6-v2"
PRESETS = ("v1", "fast", "paper", "reference_code", "whole")
SAME_SCORE = 2e-7
"""A vector's last bits depend on its batch, also in fp32."""
ONE_WORKER = ComputeConfig(workers=1, lone_run_threads=1)
WORDS = [
    "paris",
    "capital",
    "of",
    "france",
    "1912",
    "thirteen",
    "red",
    "sofa",
    "kitten",
    "harbour",
    "not",
    "zoë",
    "3.5",
    "kg",
    "東京",
    "treaty",
    "sign",
    "in",
    "june",
]
needs_vnni = pytest.mark.skipif(not has_vnni(), reason="this processor has no VNNI")


@pytest.fixture
def model(minilm: Path) -> BuiltModel:
    return load_built(minilm, MODEL)


@pytest.fixture(scope="module")
def scorers(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Scorer]]:
    """One scorer for each way of choosing windows."""
    given_ = {"model_repository": minilm, "workers": 1, "lone_run_threads": 1}
    opened = {
        choice: Scorer.embedded(window_choice=choice, disk_directory=tmp_path_factory.mktemp(choice), **given_)
        for choice in ("fp32", "auto")
    }
    yield opened
    for scorer in opened.values():
        scorer.close()


def parts(scorer: Scorer, items: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    report = scorer.score(items, ",".join(f"smile:{preset}" for preset in PRESETS))
    found = []
    for item in report:
        for label, result in item.scores.items():
            own = result.parts
            found.append((label, result.score, own.best_window, own.bin, result.matched_reference, result.warnings))
    return found


def assert_same(scorers: dict[str, Scorer], items: Sequence[dict[str, Any]]) -> None:
    expected, found = (parts(scorers[choice], items) for choice in ("fp32", "auto"))
    assert len(found) == len(expected) == len(PRESETS) * len(items)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[1] == pytest.approx(theirs[1], abs=SAME_SCORE), ours
        assert (ours[0], *ours[2:]) == (theirs[0], *theirs[2:])


@needs_vnni
def test_scores_of_real_rows_are_those_of_fp32(scorers: dict[str, Scorer]) -> None:
    rows = own_rows().rows
    items = [{"references": row.references, "prediction": row.prediction} for row in rows[::18]]
    # Answers to other questions, joined, in which no reference need be.
    items += [
        {
            "references": row.references,
            "prediction": " ".join(each.prediction for each in rows[(place * 7) % 400 :][:20] if each is not row),
        }
        for place, row in enumerate(rows[::62])
    ]
    assert_same(scorers, items)


@needs_vnni
@given(
    predictions=st.lists(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=90).map(" ".join),
        min_size=1,
        max_size=3,
    ),
    references=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=3),
)
@settings(max_examples=example_count(12), deadline=None)
def test_scores_of_drawn_texts_are_those_of_fp32(
    scorers: dict[str, Scorer], predictions: list[str], references: list[str]
) -> None:
    assert_same(scorers, [{"references": references, "prediction": each} for each in predictions])


def on_disk(tmp_path: Path) -> CacheConfig:
    return CacheConfig(disk=DiskConfig(tmp_path / "store", 1 << 22, 1 << 22, 1 << 22))


@needs_vnni
async def test_approximate_vectors_have_entries_of_their_own(open_backends: OpenBackends, tmp_path: Path) -> None:
    engine = await open_backends(cache=on_disk(tmp_path), compute=ONE_WORKER)
    embeddings = engine.ports.embeddings
    texts = [f"window number {number}" for number in range(9)]
    tiers = [Tier.WINDOW] * len(texts)
    rough = await embeddings.embed_roughly("", texts, tiers)
    exact = await embeddings.embed("", texts, tiers)
    assert set(rough.sources) == set(exact.sources) == {AnswerSource.COMPUTED}
    assert set((await embeddings.embed_roughly("", texts, tiers)).sources) == {AnswerSource.MEMORY}
    status = engine.ports.encoders.statuses()[0]
    bound = status.metadata.rough_cosine_error
    assert bound is not None
    error = float(np.abs((rough.values - exact.values) @ exact.values.T).max())
    assert 0 < error < bound < 0.2
    assert any("chosen in 8 bits" in remark for remark in status.remarks)
    assert not engine.health().degraded


@pytest.mark.parametrize(
    ("numeric_class", "vnni", "has_store", "why"),
    [
        ("fp32-cpu", True, True, ""),
        ("fp32-cpu", False, True, "VNNI"),
        ("fp32-cpu", True, False, "no disk store"),
        ("int8-rows-cpu", True, True, "only from models in fp32"),
        ("fp16-cuda", True, True, "only from models in fp32"),
    ],
)
def test_a_graph_is_only_for_encoders_that_gain_and_have_a_store(
    model: BuiltModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    numeric_class: str,
    vnni: bool,  # noqa: FBT001 - a table
    has_store: bool,  # noqa: FBT001 - as above
    why: str,
) -> None:
    monkeypatch.setattr(window_graphs, "has_vnni", lambda: vnni)
    said = reason_without_graph(replace(model, numeric_class=numeric_class), tmp_path if has_store else None)
    assert (why in said) if why else (not said)


def test_a_small_memory_limit_leaves_no_room_for_a_graph(tmp_path: Path) -> None:
    def choice(limit: str, **values: Any) -> str:
        loaded = Settings.load(disk_directory=tmp_path, memory_limit=limit, judge_backend="none", **values)
        return loaded.engine.compute.window_choice

    assert choice("1500MiB") == "fp32"
    assert choice("1536MiB") == "auto"
    assert choice("1GiB", window_choice="bf16") == "bf16"


def wrong_vectors(error: float) -> Callable[..., Any]:
    """In the place of `WindowSession`: vectors that have nothing to do with the texts, and a measured error."""

    class WrongVectors:
        cosine_error = error

        def __init__(self, model: BuiltModel, _: Path) -> None:
            self._dims = model.dims

        def run(self, ids: Sequence[NDArray[np.int32]], **_: object) -> RunOutput:
            return RunOutput(np.eye(len(ids), self._dims, dtype=np.float32), {})

    return WrongVectors


def refuse(*_: object) -> Path:
    raise NoGraphError("the writer ended with status 1: MemoryError")


def unopenable(*_: object) -> WindowSession:
    raise KeyError("gradewire.cosine_error")


@needs_vnni
@pytest.mark.parametrize(
    ("patched", "by", "told"),
    [
        ("provide_graph", refuse, "its 8-bit graph cannot be used"),
        ("WindowSession", unopenable, "its 8-bit graph cannot be used"),
        ("WindowSession", wrong_vectors(0.05), "more than 0.075"),
        ("WindowSession", wrong_vectors(0.5), "off by 0.500, more than 0.120"),
        ("WindowSession", wrong_vectors(float("nan")), "more than nan"),
    ],
)
async def test_without_a_good_graph_fp32_chooses_and_the_log_says_so(
    open_backends: OpenBackends,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    patched: str,
    by: Callable[..., Any],
    told: str,
) -> None:
    monkeypatch.setattr(local, patched, by)
    with caplog.at_level(logging.WARNING):
        engine = await open_backends(cache=on_disk(tmp_path), compute=ONE_WORKER)
    (record,) = [each.getMessage() for each in caplog.records if "windows of" in each.getMessage()]
    assert record.startswith(f"windows of {MODEL} are chosen in fp32: ")
    assert told in record
    assert engine.ports.encoders.statuses()[0].metadata.rough_cosine_error is None
    assert not engine.health().degraded, "scores do not change"
    texts, tiers = ["a text", "windows of it"], [Tier.WINDOW] * 2
    roughly = await engine.ports.embeddings.embed_roughly("", texts, tiers)
    assert np.array_equal(roughly.values, (await engine.ports.embeddings.embed("", texts, tiers)).values)


async def test_without_a_store_fp32_chooses(open_backends: OpenBackends, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        engine = await open_backends(compute=ONE_WORKER)
    assert engine.ports.encoders.statuses()[0].metadata.rough_cosine_error is None
    assert not [each for each in caplog.records if "windows of grader-mini" in each.getMessage()]
    if has_vnni():
        said = [each.levelno for each in caplog.records if f"windows of {MODEL}" in each.getMessage()]
        assert said == [logging.INFO]


_PROVIDE = """
import sys
from pathlib import Path
from gradewire_models.repository.built import load_built
from gradewire_server.encoders.window_graphs import provide_graph
print(provide_graph(load_built(Path(sys.argv[1]), "tiny-bert"), Path(sys.argv[2])))
"""


def test_processes_that_open_at_once_write_one_graph_and_a_damaged_one_again(tmp_path: Path) -> None:
    package = make_package(tmp_path / "wheels", "bert")
    model = build_model(package.model, tmp_path / "models", wheels=package.wheels).model
    folder = tmp_path / FOLDER
    command = [sys.executable, "-c", _PROVIDE, str(tmp_path / "models"), str(folder)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {process.communicate(timeout=120)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0, 0]
    (path,) = map(Path, said)
    assert [file for file in folder.iterdir() if file.name != ".lock"] == [path]
    written_ns = path.stat().st_mtime_ns
    assert provide_graph(model, folder) == path
    assert path.stat().st_mtime_ns == written_ns, "a sound graph is not written again"
    whole = path.read_bytes()
    path.write_bytes(whole[:1000])
    assert provide_graph(model, folder) == path
    assert path.stat().st_size == len(whole)
    session = WindowSession(model, path)
    assert 0 < session.cosine_error < 0.5


def test_a_failing_writer_is_told_by_its_last_line(model: BuiltModel, tmp_path: Path) -> None:
    with pytest.raises(NoGraphError, match=r"ended with status 1: .*ModelNotBuiltError: model 'gone' is not built"):
        provide_graph(replace(model, directory=tmp_path / "models" / "gone"), tmp_path / FOLDER)
    assert [file.name for file in (tmp_path / FOLDER).iterdir()] == [".lock"]
