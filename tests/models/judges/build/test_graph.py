"""The 8-bit graph of tiny judges against the same arithmetic by hand, and a text's result in every company."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.judges.build.int8_by_hand import Array, last_logits
from tests.models.judges.build.tiny_judges import TinyJudge, vocabulary, write_gguf
from tests.support.examples import example_count

from gradewire_models.errors import BuildError
from gradewire_models.judges.build.graph import write_graph
from gradewire_models.judges.build.reference import ReferencePass
from gradewire_models.judges.build.verify import JudgeSession, States
from gradewire_models.judges.build.weights import JudgeWeights
from gradewire_models.judges.description import ONNX_DATA_FILE, ONNX_FILE
from gradewire_models.judges.repository import load_judge
from gradewire_models.repository.digest import file_sha256

ARCHITECTURES = ("qwen2", "llama")
TEXT = st.lists(st.integers(0, len(vocabulary()) - 1), min_size=1, max_size=30)


@pytest.fixture(scope="module", params=ARCHITECTURES)
def architecture(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def session(judge_repository: Path, architecture: str) -> JudgeSession:
    path = load_judge(judge_repository, f"tiny-{architecture}").onnx_path
    assert path is not None
    return JudgeSession(path)


def draw(length: int, seed: int = 0) -> list[int]:
    return np.random.default_rng([seed, length]).integers(0, len(vocabulary()), length).tolist()


def test_it_computes_what_the_arithmetic_says(
    session: JudgeSession, tiny_judges: dict[str, TinyJudge], architecture: str
) -> None:
    weights = JudgeWeights(tiny_judges[architecture].gguf)
    texts = [draw(length) for length in (1, 2, 3, 5, 7, 9, 40)]
    found, _ = session.run(texts)
    apart = [float(np.abs(own - last_logits(weights, text)).max()) for own, text in zip(found, texts, strict=True)]
    # Where float32 differs in the last bit, a rounding to 8 bits tips now and then; the more so the longer the text.
    assert sorted(apart)[4] < 1e-4
    assert max(apart) < 0.05


def test_eight_bits_stay_near_plain_float32(
    session: JudgeSession, tiny_judges: dict[str, TinyJudge], architecture: str
) -> None:
    weights = JudgeWeights(tiny_judges[architecture].gguf)
    texts = [draw(length, seed=2) for length in (3, 25)]
    reference = ReferencePass(weights, texts)
    for index in range(weights.sizes.layers):
        reference.advance(weights.layer(index))
    reference.finish_hidden(weights.tensor("output_norm.weight", weights.sizes.dims))
    for block in weights.row_blocks(weights.head_name):
        reference.add_logits(block)
    found, _ = session.run(texts)
    for own, its in zip(found, reference.logits, strict=True):
        assert np.corrcoef(own, its)[0, 1] > 0.995


@settings(deadline=None, max_examples=example_count(20))
@given(texts=st.lists(TEXT, min_size=1, max_size=6), prefix=TEXT, more=TEXT)
def test_a_text_gets_the_same_bits_in_any_company(
    session: JudgeSession, texts: list[list[int]], prefix: list[int], more: list[int]
) -> None:
    _, kept = session.run([prefix])
    together, states = session.run(texts, prefix=kept)
    lengths = [len(text) for text in texts]
    # Some go on with one token, some with several, as in a batch of prompts and answers under way.
    nexts = [more if place % 2 else more[:1] for place in range(len(texts))]
    further, after = session.run(nexts, prefix=kept, past=states, past_lengths=lengths)
    parts = cut(states, lengths)
    ends = cut(after, [old + len(new) for old, new in zip(lengths, nexts, strict=True)])
    for place, text in enumerate(texts):
        logits, own = session.run([text], prefix=kept)
        np.testing.assert_array_equal(logits[0], together[place])
        later, grown = session.run([nexts[place]], prefix=kept, past=own, past_lengths=[len(text)])
        np.testing.assert_array_equal(later[0], further[place])
        for name, state in own.items():
            np.testing.assert_array_equal(state, parts[place][name])
            np.testing.assert_array_equal(grown[name], ends[place][name])


def cut(states: States, lengths: list[int]) -> list[States]:
    ends = np.cumsum(lengths)[:-1]
    pieces: dict[str, list[Array]] = {name: np.split(array, ends, 1) for name, array in states.items()}
    return [{name: parts[place] for name, parts in pieces.items()} for place in range(len(lengths))]


def test_tokens_one_by_one_are_the_text_in_one_pass(session: JudgeSession) -> None:
    text = draw(12)
    (whole,), _ = session.run([text])
    _, states = session.run([text[:5]])
    for place in range(5, len(text)):
        logits, states = session.run([text[place : place + 1]], past=states, past_lengths=[place])
    # Matrix products of other heights may round differently in float32; a rounding to 8 bits that tips is what is left.
    np.testing.assert_allclose(logits[0], whole, atol=0.02)


@pytest.mark.parametrize("kept", [1, 6, 19])
def test_a_kept_prefix_is_as_good_as_one_pass(session: JudgeSession, kept: int) -> None:
    text = draw(20, seed=3)
    (whole,), _ = session.run([text])
    _, prefix = session.run([text[:kept]])
    (found,), _ = session.run([text[kept:]], prefix=prefix)
    np.testing.assert_allclose(found, whole, atol=0.02)
    assert np.abs(found - whole).mean() < 1e-3


def test_what_stands_before_matters(session: JudgeSession) -> None:
    text = draw(8)
    _, prefix = session.run([draw(8, seed=4)])
    (alone,), _ = session.run([text])
    (behind,), _ = session.run([text], prefix=prefix)
    assert np.abs(alone - behind).max() > 0.05


def test_the_same_file_gives_the_same_bytes(
    tiny_judges: dict[str, TinyJudge], tmp_path: Path, architecture: str
) -> None:
    digests = []
    for run in ("one", "two"):
        weights = JudgeWeights(tiny_judges[architecture].gguf)
        write_graph(weights, tmp_path / run, ReferencePass(weights, [[1]]), lambda _done: None)
        digests.append([file_sha256(tmp_path / run / path) for path in (ONNX_FILE, ONNX_DATA_FILE)])
    assert digests[0] == digests[1]


def test_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", "gemma2", words="qwen2")
    with pytest.raises(BuildError, match="gemma2, but only qwen2, llama can be built"):
        JudgeWeights(tmp_path / "m.gguf")


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"nothing of the kind" * 10)
    with pytest.raises(BuildError, match="as GGUF"):
        JudgeWeights(tmp_path / "m.gguf")


def test_a_missing_or_misshapen_tensor_is_named(qwen2: TinyJudge) -> None:
    weights = JudgeWeights(qwen2.gguf)
    with pytest.raises(BuildError, match=r"blk\.9\.ffn_up\.weight must have shape \[3\], but it is missing"):
        weights.tensor("blk.9.ffn_up.weight", 3)
    with pytest.raises(BuildError, match=r"output_norm\.weight must have shape \[3\], but it has shape \[64\]"):
        weights.tensor("output_norm.weight", 3)
