"""Windows chosen by approximate vectors, on any processor: fp32's vectors with noise stand for those of bf16."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.examples import example_count

from gradewire import Scorer
from gradewire_models.repository.built import BuiltModel
from gradewire_server.encoders.encoder import RunOutput, open_tokenizer
from gradewire_server.encoders.local import EncoderSession
from gradewire_server.settings.engine import ComputeConfig

SAME_SCORE = 2e-4
PRESETS = ("v1", "fast", "paper", "reference_code", "whole")
NOISE = 0.1
"""Largest error of a cosine, so large that in one item of five the closest window lies between once and twice the
measured error below the one that looks closest."""
# All of them are among the windows by which the error is measured.
REFERENCES = ("neil armstrong", "old red sofa", "william shakespeare", "interest rate", "sydney")
# Near them, so that several windows are about as close.
NEAR = "melbourne brisbane perth canberra australia harbour buzz aldrin astronaut pilot lunar couch crimson ancient"
OTHERS = "chair parasol raincoat rain playwright hamlet poet bard loan percent bank mortgage and the of two in it said"
WORDS = f"{NEAR} {OTHERS}".split()
PREDICTION = st.lists(st.sampled_from(WORDS), min_size=30, max_size=50).map(" ".join)


class NoisyVectors:
    """In the place of `Bf16Session`. Each vector moves by NOISE towards the reference that is nearest, or away from it.

    So the closest window may lose NOISE and another one win it, which is the most that the error allows: what is
    within twice the error has to be looked at. Vectors are not scaled to length 1 again: the error of a product with
    any vector of length 1 is NOISE at the most, as it is.
    """

    texts: ClassVar[int] = 0

    def __init__(self, model: BuiltModel, compute: ComputeConfig) -> None:
        self._exact = EncoderSession(model, compute)
        ids = [text.ids for text in open_tokenizer(model).encode(REFERENCES)]
        self._references = self._exact.run(ids, layers=(), exclusive=False).sentences

    def run(self, ids: Sequence[NDArray[np.int32]], *, layers: Sequence[int], exclusive: bool) -> RunOutput:
        output = self._exact.run(ids, layers=layers, exclusive=exclusive)
        nearest = (output.sentences @ self._references.T).argmax(axis=1)
        # Drawn by the text, so that it has one vector.
        signs = np.array([np.random.default_rng([7, *each]).choice((-1, 1)) for each in ids], np.float32)
        NoisyVectors.texts += len(ids)
        moved = output.sentences + NOISE * signs[:, None] * self._references[nearest]
        return RunOutput(moved.astype(np.float32), output.tokens)


@pytest.fixture(scope="module")
def scorers(minilm: Path) -> Iterator[dict[str, Scorer]]:
    """One scorer for each way of choosing windows."""
    given_ = {"model_repository": minilm, "disk_directory": "", "workers": 1, "lone_run_threads": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gradewire_server.encoders.local.Bf16Session", NoisyVectors)
        patch.setattr("gradewire_server.encoders.local.arithmetic", lambda: "noise")
        opened = {choice: Scorer.embedded(window_choice=choice, **given_) for choice in ("fp32", "bf16")}
        for scorer in opened.values():
            scorer.score([{"references": ["a"], "prediction": "b"}], "smile:v1")  # loads the model
        yield opened
        for scorer in opened.values():
            scorer.close()


def scores(scorer: Scorer, items: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    report = scorer.score(items, ",".join(f"smile:{preset}" for preset in PRESETS))
    return {label: [item.scores[label].score for item in report] for label in report.labels}


@given(
    predictions=st.lists(PREDICTION, min_size=2, max_size=4),
    references=st.lists(st.sampled_from(REFERENCES), min_size=1, max_size=2, unique=True),
)
@settings(max_examples=example_count(12), deadline=None)
def test_scores_are_those_of_fp32_whatever_bf16_is_wrong_by(
    scorers: dict[str, Scorer], predictions: list[str], references: list[str]
) -> None:
    items = [{"references": references, "prediction": each} for each in predictions]
    expected, found = (scores(scorers[choice], items) for choice in ("fp32", "bf16"))
    assert len(found) == len(PRESETS)
    assert None not in [score for each in expected.values() for score in each]
    for label, values in expected.items():
        assert found[label] == pytest.approx(values, abs=SAME_SCORE), label


def test_windows_were_chosen_by_vectors_with_the_error_that_was_measured(scorers: dict[str, Scorer]) -> None:
    before = NoisyVectors.texts
    scores(scorers["bf16"], [{"references": ["sydney"], "prediction": " ".join(f"{word}s {word}ed" for word in WORDS)}])
    assert NoisyVectors.texts > before
    (model,) = [each for each in scorers["bf16"].models().models if each.is_default and each.kind == "encoder"]
    (remark,) = [each for each in model.remarks if "windows are chosen in bf16" in each]
    measured = float(remark.rsplit(" ", 1)[1])
    # With its margin; the references are among the texts by which it is measured.
    assert measured == pytest.approx(1.5 * NOISE, rel=0.05)
