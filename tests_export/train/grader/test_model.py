"""The grader's logit is what its definition says, whatever it is batched with."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests_export.train.grader.conftest import write_wide

from gradewire_models.repository.grader_input import MAX_TOKENS, Piece
from gradewire_train import TrainingError
from gradewire_train.encoder import TrainedEncoder, load_base
from gradewire_train.recipes import GraderTraining
from gradewire_train.run.grader_model import Grader, GraderTokenizer

TRAINING = GraderTraining(rank=2, alpha=4.0)
PIECES = [Piece((0, 5, 2, 6, 2, 7, 8, 9, 2), 5), Piece((0, 2, 6, 2, 2), 4), Piece((0, 5, 6, 2, 7, 2, 8, 2), 6)]


def trained(encoder: TrainedEncoder) -> Grader:
    grader = Grader(encoder, TRAINING)
    torch.manual_seed(3)
    for parameter in grader.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.2)
    return grader


def test_the_logit_is_the_head_over_the_mean_of_all_tokens(wide: TrainedEncoder) -> None:
    grader = trained(wide)
    found = grader.logits(PIECES)
    for piece, logit in zip(PIECES, found, strict=True):
        types = [0] * piece.answer_start + [1] * (len(piece.ids) - piece.answer_start)
        with torch.no_grad():
            rows = grader.model(
                input_ids=torch.tensor([piece.ids]), token_type_ids=torch.tensor([types])
            ).last_hidden_state[0].numpy()  # fmt: skip
        weight, bias = grader.head.weight.detach().numpy()[0], grader.head.bias.item()
        assert logit == pytest.approx(float(rows.mean(0) @ weight + bias), abs=1e-4)
    assert found[0] != pytest.approx(found[2], abs=1e-3)


def test_a_base_without_token_types_has_the_separators_alone(tmp_path: Path) -> None:
    grader = trained(load_base(str(write_wide(tmp_path / "tiny-mpnet", "mpnet")), max_tokens=MAX_TOKENS))
    found = grader.logits(PIECES)
    for piece, logit in zip(PIECES, found, strict=True):
        with torch.no_grad():
            rows = grader.model(input_ids=torch.tensor([piece.ids])).last_hidden_state[0].numpy()
        weight, bias = grader.head.weight.detach().numpy()[0], grader.head.bias.item()
        assert logit == pytest.approx(float(rows.mean(0) @ weight + bias), abs=1e-4)
    # Where the answer begins is in the ids alone.
    assert grader.logits([replace(piece, answer_start=1) for piece in PIECES]) == found


def test_an_untrained_head_says_nothing(wide: TrainedEncoder) -> None:
    assert Grader(wide, TRAINING).logits(PIECES) == [0.0, 0.0, 0.0]


def test_what_is_saved_is_what_a_later_training_starts_from(wide: TrainedEncoder, tmp_path: Path) -> None:
    grader = trained(wide)
    grader.rounded()
    expected = grader.logits(PIECES)
    grader.save(TRAINING, tmp_path)
    torch.manual_seed(4)
    for parameter in grader.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.2)
    assert grader.logits(PIECES) != pytest.approx(expected, abs=1e-3)
    grader.start_from(tmp_path)
    np.testing.assert_array_equal(grader.logits(PIECES), expected)


@pytest.mark.parametrize("kept", ["adapter_model.safetensors", "head.safetensors"])
def test_half_a_grader_is_none(kept: str, wide: TrainedEncoder, tmp_path: Path) -> None:
    grader = trained(wide)
    grader.save(TRAINING, tmp_path)
    for path in tmp_path.glob("*.safetensors"):
        if path.name != kept:
            path.unlink()
    with pytest.raises(TrainingError, match=r"--start: .* contains no grader"):
        grader.start_from(tmp_path)


def test_a_grader_of_another_rank_is_refused(wide: TrainedEncoder, wide_folder: Path, tmp_path: Path) -> None:
    trained(wide).save(TRAINING, tmp_path)
    other = Grader(load_base(str(wide_folder), max_tokens=256), replace(TRAINING, rank=3))
    with pytest.raises(TrainingError, match="base, rank or targets"):
        other.start_from(tmp_path)


def test_a_base_of_too_few_tokens_is_refused(encoder: TrainedEncoder) -> None:
    with pytest.raises(TrainingError, match="accepts too few tokens"):
        Grader(encoder, TRAINING)


def test_special_tokens_in_a_text_do_not_part_it(wide: TrainedEncoder) -> None:
    (found,) = GraderTokenizer(wide.tokenizer).pieces([("the cat", "w1", "w2 </s> <s> w3")])
    assert found.pieces[0].ids.count(2) == 3
    assert found.pieces[0].ids.count(0) == 1
