"""Texts through the encoder, and bases that cannot be loaded."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests_export.conftest import MAX_TOKENS as POSITIONS
from tests_export.conftest import Folder, expected_vectors
from tests_export.train.conftest import MAX_TOKENS

from gradewire_models.errors import ModelError
from gradewire_train import TrainingError
from gradewire_train.batches import Batches, chosen, tokenize
from gradewire_train.encoder import TrainedEncoder, load_base
from gradewire_train.examples import Example


def test_vectors_do_not_depend_on_their_neighbours(encoder: TrainedEncoder) -> None:
    ids = encoder.tokenize(["w1 w2 w3 w4 w5 w6", "yes", "the cat .", "w9 " * 200, ""])
    assert max(map(len, ids)) == MAX_TOKENS
    with torch.inference_mode():
        for chunk in (1, 2, 64):
            found = encoder.vectors(ids, chunk=chunk).numpy()
            np.testing.assert_allclose(found, expected_vectors(encoder.model, ids, "mean"), atol=2e-6)


def test_bases_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="neither a catalog model"):
        load_base("all-MiniLM-L7", max_tokens=8)
    with pytest.raises(ModelError, match="variant"):
        load_base("all-MiniLM-L6-v2-int8", max_tokens=8)
    with pytest.raises(ModelError, match="is not a model folder"):
        load_base(str(tmp_path), max_tokens=8)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_folder_of_roberta_trains_with_the_pooling_that_is_asked_for(
    make_folder: Callable[..., Folder], pooling: str
) -> None:
    folder = make_folder("roberta")
    with pytest.raises(TrainingError, match=r"does not say in modules\.json how it pools\. Choose --pooling mean or"):
        load_base(str(folder.path), max_tokens=MAX_TOKENS)
    encoder = load_base(str(folder.path), max_tokens=512, pooling=pooling)
    # Two of RoBERTa's positions are before the first token.
    ids = encoder.tokenize(["w1 w2 w3", "w9 " * 200, "yes"])
    assert max(map(len, ids)) == POSITIONS
    with torch.inference_mode():
        found = encoder.vectors(ids).numpy()
    np.testing.assert_allclose(found, expected_vectors(folder.model, ids, pooling), atol=2e-6)


def test_a_pooling_that_is_asked_for_overrides_the_folders(base_folder: Path, encoder: TrainedEncoder) -> None:
    assert encoder.pooling == "mean"
    assert load_base(str(base_folder), max_tokens=MAX_TOKENS, pooling="cls").pooling == "cls"


def test_batches_depend_on_seed_and_step_alone(encoder: TrainedEncoder, examples: list[Example]) -> None:
    tokens = tokenize(examples, encoder, negatives=1, plain=True)
    assert {len(each.negatives) for each in tokens.examples} == {1}
    whole = Batches(tokens.lengths, batch_size=10, seed=4)
    assert whole.per_epoch == 9
    steps = [whole[step].tolist() for step in range(30)]
    alone = Batches(tokens.lengths, batch_size=10, seed=4)
    assert [alone[step].tolist() for step in (29, 3, 17)] == [steps[29], steps[3], steps[17]]
    assert Batches(tokens.lengths, batch_size=10, seed=5)[0].tolist() != steps[0]
    for epoch in (steps[:9], steps[9:18]):
        assert len({index for batch in epoch for index in batch}) == 90  # none of them twice
    assert steps[:9] != steps[9:18]


def test_tasks_are_chosen_by_name_and_by_group() -> None:
    examples = [Example(task, "q", "a", "b", ("c",)) for task in ("nli", "synonyms", "numbers", "descriptions")]
    names = lambda found: [example.task for example in found]  # noqa: E731 - shorter than a function
    assert names(chosen(examples, ["numbers"], [])) == ["numbers"]
    assert names(chosen(examples, [], ["synonyms"])) == ["nli", "descriptions"]
    assert names(chosen(examples, ["synonyms", "nli"], ["numbers"])) == ["nli", "synonyms"]
    with pytest.raises(TrainingError, match="unknown task 'number'"):
        chosen(examples, ["number"], [])
    with pytest.raises(TrainingError, match="exclude all examples"):
        chosen(examples, ["nli"], ["nli"])
