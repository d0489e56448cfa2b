"""Padded batches of tiny judges on the CPU provider: the arithmetic, a row in every company, states on the device."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.judges.build.tiny_judges import vocabulary, write_gguf
from tests.support.examples import example_count

from gradewire_models.judges.build.padded_graph import write_padded_graph
from gradewire_models.judges.build.padded_layers import to_4_bits
from gradewire_models.judges.build.reference import ReferencePass
from gradewire_models.judges.build.weights import JudgeWeights
from gradewire_models.judges.cores import padded
from gradewire_models.judges.cores.opening import open_core
from gradewire_models.judges.cores.padded import PaddedCore, open_padded
from gradewire_models.judges.cores.rows import CoreError, Row, RowResult, Run

EVERY = tuple(range(len(vocabulary())))
TEXT = st.lists(st.sampled_from(EVERY), min_size=1, max_size=20).map(tuple)


@pytest.fixture(scope="module", params=["qwen2", "llama"])
def weights(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> JudgeWeights:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    write_gguf(path, request.param, tied=request.param == "llama")
    return JudgeWeights(path)


@pytest.fixture(scope="module")
def opened(weights: JudgeWeights, tmp_path_factory: pytest.TempPathFactory) -> PaddedCore:
    directory = tmp_path_factory.mktemp("fp16")
    write_padded_graph(weights, directory, "fp16", lambda _done: None)
    return open_padded(directory / "fp16" / "model.onnx", threads=1, device="cpu")


@pytest.fixture
def core(opened: PaddedCore) -> PaddedCore:
    opened._states.clear()
    return opened


def draw(length: int, seed: int = 0) -> tuple[int, ...]:
    return tuple(np.random.default_rng([seed, length]).integers(0, len(EVERY), length).tolist())


def shares(results: list[RowResult]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array([result.probabilities for result in results])


def expected(weights: JudgeWeights, texts: list[tuple[int, ...]]) -> np.ndarray:  # type: ignore[type-arg]
    reference = ReferencePass(weights, texts)
    reference.finish(weights)
    powers = np.exp(reference.logits - reference.logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_it_computes_what_plain_float32_computes(core: PaddedCore, weights: JudgeWeights) -> None:
    texts = [draw(length) for length in (1, 2, 7, 8, 9, 30)]
    results = core.run(Run(None, tuple(Row(place, text, EVERY, next_token=True) for place, text in enumerate(texts))))
    wanted = expected(weights, texts)
    np.testing.assert_allclose(shares(results), wanted, atol=2e-4)
    assert [result.next_token for result in results] == wanted.argmax(axis=1).tolist()
    assert [result.mass for result in results] == pytest.approx([1.0] * len(texts), abs=1e-5)


@settings(deadline=None, max_examples=example_count(20))
@given(prefix=TEXT, texts=st.lists(TEXT, min_size=2, max_size=5), more=TEXT)
def test_rows_after_a_shared_prefix_are_the_whole_texts(
    opened: PaddedCore,
    weights: JudgeWeights,
    prefix: tuple[int, ...],
    texts: list[tuple[int, ...]],
    more: tuple[int, ...],
) -> None:
    core = opened
    core._states.clear()
    core.run(Run(None, (Row(100, prefix, keep=True),)))
    rows = tuple(Row(place, text, EVERY, keep=True) for place, text in enumerate(texts))
    first = core.run(Run(100, rows))
    np.testing.assert_allclose(shares(first), expected(weights, [prefix + text for text in texts]), atol=3e-3)
    # Some of them go on, in another order and with rows that are new, so their states are packed again.
    new = (Row(50, more, EVERY),)
    going_on = tuple(Row(place, more, EVERY, keep=True) for place in reversed(range(1, len(texts))))
    second = core.run(Run(100, (*going_on, *new), drop=(0,)))
    wholes = [prefix + texts[row.state] + more for row in going_on] + [prefix + more]
    np.testing.assert_allclose(shares(second), expected(weights, wholes), atol=3e-3)


def test_states_that_go_on_together_stay_on_the_device(core: PaddedCore, weights: JudgeWeights) -> None:
    texts = [draw(3), draw(11)]
    core.run(Run(None, tuple(Row(place, text, keep=True) for place, text in enumerate(texts))))
    for step in range(3):
        batch = core._states[0].batch
        results = core.run(Run(None, tuple(Row(place, (step,), EVERY, keep=True) for place in (0, 1))))
        assert batch.copies == {}  # nothing was copied from the device
    np.testing.assert_allclose(shares(results), expected(weights, [(*text, 0, 1, 2) for text in texts]), atol=3e-3)


def test_states_that_go_on_in_another_order_keep_their_own_past(core: PaddedCore, weights: JudgeWeights) -> None:
    texts = [draw(3), draw(11)]
    core.run(Run(None, tuple(Row(place, text, keep=True) for place, text in enumerate(texts))))
    results = core.run(Run(None, tuple(Row(place, (7,), EVERY) for place in (1, 0))))
    wholes = [(*texts[1], 7), (*texts[0], 7)]
    np.testing.assert_allclose(shares(results), expected(weights, wholes), atol=3e-3)


def test_a_state_that_is_kept_alone_does_not_keep_its_batch(core: PaddedCore, weights: JudgeWeights) -> None:
    short, long = draw(3), draw(100)
    core.run(Run(None, (Row(0, short, keep=True), *(Row(place, long, EVERY) for place in range(1, 8)))))
    rows = tuple(Row(place, long, keep=True) for place in range(10, 14))
    core.run(Run(None, (Row(9, short, keep=True), *rows)))
    core.run(Run(None, (Row(20, (1,), EVERY),), drop=tuple(row.state for row in rows)))
    for state in (core._states[0], core._states[9]):
        assert state.batch.valid.size == len(short)
        assert state.batch.blocks == []
        assert sum(copy.nbytes for copy in state.batch.copies.values()) == sum(
            state.block(number).nbytes for number in state.batch.copies
        )
    results = core.run(Run(None, (Row(0, (7,), EVERY),)))
    np.testing.assert_allclose(shares(results), expected(weights, [(*short, 7)]), atol=3e-3)


def test_a_prefix_in_several_rows_is_the_same_prefix(core: PaddedCore) -> None:
    text = draw(21)
    core.run(Run(None, (Row(1, text, keep=True),)))
    for ids in (text[:10], text[10:]):
        core.run(Run(None, (Row(2, ids, keep=True),)))
    one, other = (core.run(Run(state, (Row(9, draw(5), EVERY),))) for state in (1, 2))
    np.testing.assert_allclose(shares(one), shares(other), atol=2e-4)


def test_labels_of_different_rows_may_differ(core: PaddedCore) -> None:
    rows = (Row(1, draw(4), (5, 6, 7)), Row(2, draw(4), (5, 6)), Row(3, draw(4), next_token=True), Row(4, draw(4)))
    three, two, token, nothing = core.run(Run(None, rows))
    assert (len(three.probabilities), len(two.probabilities)) == (3, 2)
    assert three.mass is not None
    assert two.mass is not None
    assert three.mass > two.mass
    assert two.probabilities[0] == pytest.approx(three.probabilities[0] / sum(three.probabilities[:2]))
    assert token.next_token in EVERY
    assert (token.probabilities, nothing) == ((), RowResult())


def test_dropped_states_are_gone(core: PaddedCore) -> None:
    core.run(Run(None, (Row(1, (1,), keep=True), Row(2, (1,), keep=True))))
    core.run(Run(None, (Row(2, (2,), EVERY),), drop=(1,)))
    assert {1, 2} & set(core._states) == set()
    with pytest.raises(KeyError):
        core.run(Run(1, (Row(3, (1,), EVERY),)))


def test_four_bits_are_near(weights: JudgeWeights, tmp_path: Path) -> None:
    write_padded_graph(weights, tmp_path, "int4", lambda _done: None)
    core = open_core(tmp_path / "int4" / "model.onnx", "int4", threads=1, device="cpu")
    texts = [draw(length) for length in (2, 9, 30)]
    results = core.run(Run(None, tuple(Row(place, text, EVERY) for place, text in enumerate(texts))))
    for found, wanted in zip(shares(results), expected(weights, texts), strict=True):
        assert np.corrcoef(np.log(found), np.log(wanted))[0, 1] > 0.8  # 64 drawn dims, two blocks each


def unpacked(packed: Any, scales: Any, zeros: Any) -> Any:
    values = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*scales.shape, 32).astype(np.float32)
    return ((values - zeros.astype(np.float32)[..., None]) * scales.astype(np.float32)[..., None]).reshape(
        len(scales), -1
    )


def test_weights_that_had_4_bits_keep_their_values() -> None:
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 16, (6, 4, 32))
    levels[..., 0], levels[..., 1] = 0, 15
    levels[:3, 0] = np.minimum(levels[:3, 0], 14)  # a block without its largest value
    matrix = ((levels - rng.uniform(3, 12, (6, 4, 1))) * rng.uniform(0.01, 0.02, (6, 4, 1))).reshape(6, -1)
    found = unpacked(*to_4_bits(matrix.astype(np.float32)))
    np.testing.assert_allclose(found, matrix, atol=2e-4)  # float16 in scales and zero points


def test_other_weights_move_by_half_a_step_and_blocks_may_be_constant_or_incomplete() -> None:
    matrix = np.random.default_rng(1).standard_normal((5, 40)).astype(np.float32)
    matrix[0, :32], matrix[1, :32] = 0.0, -0.25
    packed, scales, zeros = to_4_bits(matrix)
    assert packed.shape == (5, 2, 16)
    found = unpacked(packed, scales, zeros)[:, :40]
    steps = np.repeat(scales.astype(np.float32), 32, axis=1)[:, :40]
    assert (np.abs(found - matrix) <= 0.52 * steps + 1e-3).all()
    np.testing.assert_allclose(found[:2, :32], matrix[:2, :32], atol=1e-3)


def test_numbers_that_are_none_are_no_answer() -> None:
    with pytest.raises(CoreError, match="not finite"):
        padded._read([Row(1, (1,), (0, 1))], np.full((1, 2), np.nan, np.float32), np.zeros(1), np.zeros(1, int))


def test_a_machine_without_a_gpu_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(CoreError, match=r"no CUDAExecutionProvider\. Install onnxruntime-gpu"):
        open_core(tmp_path / "model.onnx", "fp16", threads=1, device="cuda")


def test_int8_does_not_run_on_a_gpu(tmp_path: Path) -> None:
    with pytest.raises(CoreError, match="int8 runs on CPUs only"):
        open_core(tmp_path / "model.onnx", "int8", threads=1, device="cuda:1")


def test_a_file_that_is_no_graph_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(CoreError, match="cannot open"):
        open_core(tmp_path / "model.onnx", "fp16", threads=1, device="cpu")
    with pytest.raises(CoreError, match="no core for the form gguf"):
        open_core(tmp_path / "model.gguf", "gguf", threads=1, device="cpu")
