"""The default metrics with an encoder for GPUs and its grader, under the code that runs them on a GPU.

ONNX Runtime's CPU provider stands in for the GPU, and the bases' graphs with weights in float16 for the variants'.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.encoders.conftest import bound_on_cpu
from tests.support.models.rounded_variants import ENCODER, GRADER, describe, write_rounded_variants

from gradewire import Correctness, GradewireError, Scorer
from gradewire.results import ItemScores
from gradewire_models.catalog.loading import load_catalog
from gradewire_models.repository.built import load_built
from gradewire_models.repository.config import (
    CONFIG_FILE,
    PREFIX,
    files_in,
    read_config,
    to_parameters,
    write_config,
)
from gradewire_server.encoders.cuda import Gpu
from gradewire_server.encoders.gpu_shapes import ShapeTimes

BASE = "all-MiniLM-L6-v2"
PAIRS = Path(__file__).parents[4] / "examples/flips/development.jsonl"


@pytest.fixture(scope="module")
def repository(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("variants")
    for path in minilm.iterdir():
        (repository / path.name).symlink_to(path)
    write_rounded_variants(repository)
    return repository


@pytest.fixture(scope="module")
def gpu() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gradewire_server.encoders.cuda.find_gpu", lambda _: Gpu(0))
        patch.setattr(
            "gradewire_server.encoders.cuda.open_bound",
            lambda model, _config, _index, buckets: bound_on_cpu(model, buckets),
        )
        # On a CPU, the largest shapes take so long that the GPU would count as lost.
        patch.setattr(
            "gradewire_server.encoders.cuda.measure",
            lambda _run, shapes: ShapeTimes({shape: 1e-3 + 1e-6 * shape.size for shape in shapes}),
        )
        yield


def opened(repository: Path, model: str = ENCODER) -> Scorer:
    return Scorer.embedded(model_repository=repository, default_model=model, disk_directory="", workers=1)


def items() -> list[dict[str, Any]]:
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()[::40]]
    return [
        {"question": pair["question"], "references": pair["references"], "prediction": pair[name]}
        for pair in pairs
        for name in ("answer", "changed")
    ]


def value(result: ItemScores, metric: str) -> float:
    score = result.scores[metric].score
    assert score is not None
    return score


@pytest.mark.usefixtures("gpu")
def test_the_default_metrics_score_as_with_the_base(repository: Path) -> None:
    """The catalog's bound was measured on other rows, with the variant's own graph."""
    with opened(repository) as scorer, opened(repository, BASE) as reference:
        found, expected = scorer.score(items()), reference.score(items())
    compared = load_catalog()[ENCODER].compared_fits
    assert compared is not None
    for one, other in zip(found, expected, strict=True):
        assert one.scores.keys() == other.scores.keys() >= {"correctness", "smile"}
        for name, score in one.scores.items():
            assert score.status == "OK", score.message
            assert score.correct == other.scores[name].correct
    changes = {
        name: max(abs(value(one, name) - value(other, name)) for one, other in zip(found, expected, strict=True))
        for name in found[0].scores
    }
    assert 0 < changes["correctness"] <= compared.max_change
    assert changes["smile"] <= 1e-3
    provenance = found[0].scores["correctness"].provenance
    assert provenance is not None
    assert f"grader={GRADER}@{load_built(repository, GRADER).digest[:12]}" in provenance.line
    assert f"model={ENCODER}@" in provenance.line
    assert f"fitted on {BASE}'s scores (compared on {compared.rows} rows) of " in provenance.calibration


@pytest.mark.usefixtures("gpu")
def test_the_bases_grader_is_not_for_its_fits_and_the_message_names_the_one_that_is(repository: Path) -> None:
    with opened(repository) as scorer:
        (found,) = scorer.score(items()[:1], Correctness(grader="grader-mini"))
        (without,) = scorer.score(items()[:1], Correctness(grader="none"))
    (failed,), (scored,) = found.scores.values(), without.scores.values()
    assert failed.status == "INVALID_PARAMETER"
    said = f"no fit for correctness with grader grader-mini, but with {GRADER}. Omit grader, name {GRADER}, or fit one"
    assert said in failed.message
    assert scored.status == "OK"


@pytest.mark.usefixtures("gpu")
def test_a_grader_that_is_not_built_is_named_with_its_command(repository: Path, tmp_path: Path) -> None:
    (tmp_path / ENCODER).symlink_to(repository / ENCODER)
    with opened(tmp_path) as scorer, pytest.raises(GradewireError) as raised:
        scorer.score(items()[:1], Correctness())
    assert f"Run: gradewire models build {GRADER}" in str(raised.value)
    assert "unknown model" not in str(raised.value)


@pytest.mark.usefixtures("gpu")
def test_a_model_that_an_earlier_release_built_with_its_bases_fits_is_built_again(
    repository: Path, tmp_path: Path
) -> None:
    built = load_built(repository, ENCODER)
    (tmp_path / ENCODER).mkdir()
    for path in built.directory.iterdir():
        if path.name != CONFIG_FILE:
            (tmp_path / ENCODER / path.name).symlink_to(path)
    describe(tmp_path, replace(built, calibrations=()), files_in(read_config(built.directory / CONFIG_FILE)[1]))
    config, _ = read_config(tmp_path / ENCODER / CONFIG_FILE)
    for name, text in to_parameters(load_catalog()[BASE].calibrations).items():
        config.parameters[PREFIX + name].string_value = text
    write_config(tmp_path / ENCODER / CONFIG_FILE, config)
    assert "calibration.correctness" in read_config(tmp_path / ENCODER / CONFIG_FILE)[1]
    with opened(tmp_path) as scorer:
        (found,) = scorer.score(items()[:1], Correctness())
    (failed,) = found.scores.values()
    assert failed.status == "INVALID_PARAMETER"
    assert "if an earlier release built the model, run `gradewire models build NAME` again" in failed.message
    assert "digest" not in failed.message


def test_a_variant_without_a_comparison_says_that_it_has_no_fit() -> None:
    for name, model in load_catalog().items():
        if model.base and model.kind == "encoder":
            has_fits = any(each.fit for each in model.calibrations)
            assert has_fits == (model.compared_fits is not None), name
            assert {each.model_digest for each in model.calibrations if each.fit} <= {model.digest}
    texts = np.array([each.fit for each in load_catalog()[ENCODER].calibrations])
    assert len(set(texts)) == len(texts) == 3
