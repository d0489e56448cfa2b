"""The losses against the formulas written out in numpy."""

import numpy as np
import pytest
import torch

from gradewire_train.examples import Example
from gradewire_train.objective import contrastive, group, keeping, ranking


def unit(generator: np.random.Generator, *shape: int) -> torch.Tensor:
    values = generator.normal(size=shape)
    return torch.tensor(values / np.linalg.norm(values, axis=-1, keepdims=True), dtype=torch.float32)


def test_contrastive_is_the_mean_of_minus_log_softmax_over_what_is_allowed() -> None:
    generator = np.random.default_rng(1)
    anchors, candidates = unit(generator, 3, 5), unit(generator, 7, 5)
    allowed = torch.ones((3, 7), dtype=torch.bool)
    allowed[0, 4] = allowed[2, 1] = False
    expected = []
    for row in range(3):
        logits = [float(anchors[row] @ candidates[column]) / 0.2 for column in range(7) if allowed[row, column]]
        own = float(anchors[row] @ candidates[row]) / 0.2
        expected.append(np.log(np.sum(np.exp(logits))) - own)
    found = contrastive(anchors, candidates, allowed, temperature=0.2)
    assert float(found) == pytest.approx(np.mean(expected), rel=1e-5)


def test_ranking_is_the_log_of_one_and_all_pairs_in_wrong_order() -> None:
    positive, negative = torch.tensor([0.9, 0.2, 0.4]), torch.tensor([0.3, 0.8])
    pairs = sum(np.exp((float(n) - float(p)) / 0.1) for p in positive for n in negative)
    assert float(ranking(positive, negative, temperature=0.1)) == pytest.approx(np.log(1 + pairs), rel=1e-5)


def test_ranking_of_nothing_wrong_is_0() -> None:
    assert float(ranking(torch.tensor([0.5]), torch.tensor([]), temperature=0.1)) == 0.0


def test_keeping_is_0_for_the_same_cosines_in_other_directions() -> None:
    generator = np.random.default_rng(2)
    before = unit(generator, 4, 6)
    turned = torch.tensor(np.linalg.qr(generator.normal(size=(6, 6)))[0], dtype=torch.float32)
    assert float(keeping(before @ turned, before)) == pytest.approx(0.0, abs=1e-9)
    # One pair of two texts moved by 0.1, seen from both sides, of four entries: mean square 0.005, in hundreds 0.5.
    now = torch.tensor([[1.0, 0.0], [0.1, float(np.sqrt(0.99))]])
    assert float(keeping(now, torch.eye(2))) == pytest.approx(0.5, rel=1e-4)


def test_what_may_be_right_is_not_held_against_an_example() -> None:
    examples = [
        Example("numbers", "how many", "2", "two", ("3",)),
        Example("numbers", "how many", "2", "a pair", ("4",)),  # the same question: "a pair" is also right for "2"
        Example("numbers", "how old", "3", "three", ("2", "4")),
        Example("nli", "", "a dog runs", "an animal runs", ("a cat runs",)),
        Example("nli", "", "a dog runs", "a dog moves", ("an animal runs",)),  # its negative is the other's positive
    ]
    owner, allowed = group(examples)
    assert owner.tolist() == [0, 1, 2, 2, 3, 4]
    names = ["two", "a pair", "three", "animal", "moves", "3", "4", "old 2", "old 4", "a cat", "neg animal"]
    forbidden = {
        (row, names[column]) for row in range(len(examples)) for column in range(len(names)) if not allowed[row, column]
    }
    assert forbidden == {
        (0, "a pair"), (0, "4"), (1, "two"), (1, "3"),  # another answer to the same question
        (3, "neg animal"),  # the positive's own text
    }  # fmt: skip


def test_an_anchor_that_stands_as_a_candidate_is_not_pushed_away_from_itself() -> None:
    examples = [Example("nli", "", "red", "crimson", ("blue",)), Example("nli", "", "sky", "blue", ("red",))]
    _, allowed = group(examples)
    assert allowed.tolist() == [[True, True, True, False], [True, True, False, True]]


def test_the_terms_stay_on_the_device_of_their_vectors() -> None:
    """Torch refuses to mix its device without values with the processor, as it refuses to mix a GPU with it."""
    there = torch.nn.functional.normalize(torch.randn(3, 8), dim=1).to("meta").requires_grad_()
    allowed = torch.ones(3, 3, dtype=torch.bool, device="meta")
    cosines = (there * there.detach()).sum(1)
    terms = [
        contrastive(there, there, allowed, temperature=0.05),
        ranking(cosines, cosines, temperature=0.05),
        keeping(there, there.detach()),
    ]
    torch.stack(terms).sum().backward()
    assert {term.device.type for term in terms} == {"meta"}
    assert there.grad.device.type == "meta"
