"""Compute the terms of SFVE's loss: the contrastive loss, the ranking loss, and the change in the base's cosines.

All vectors have unit length, so a dot product is a cosine.
"""

from collections.abc import Sequence
from typing import Any

import torch

from gradewire_train.examples import Example, texts

_NEVER = -1e9


def group(examples: Sequence[Example]) -> tuple[Any, Any]:
    """Find, for each example in a batch, the candidates that compete with its positive.

    Exclude candidates with the text of the anchor or the positive, because they would be punished for being right. Also
    exclude other examples' candidates for the same question, because they may have the same meaning.

    Returns:
        int64 [negatives], the index of each hard negative's example; bool [examples, examples + negatives], the allowed
        candidates (all positives, then all hard negatives) for each example.
    """
    read = [texts(example) for example in examples]
    owner = [index for index, each in enumerate(read) for _ in each[2:]]
    candidates = [each[1] for each in read] + [text for each in read for text in each[2:]]
    owners = [*range(len(read)), *owner]
    numbers: dict[str, int] = {}
    candidate_ids = torch.tensor([numbers.setdefault(text, len(numbers)) for text in candidates])
    anchor_ids = torch.tensor([numbers.setdefault(each[0], len(numbers)) for each in read])
    # Each example without a question gets a unique question, because these examples have nothing in common.
    asked = [example.question or f"\0{index}" for index, example in enumerate(examples)]
    questions = torch.tensor([numbers.setdefault(f"\1{question}", len(numbers)) for question in asked])
    owner_of = torch.tensor(owners)
    own = owner_of[None, :] == torch.arange(len(read))[:, None]
    same_text = (candidate_ids[None, :] == anchor_ids[:, None]) | (
        candidate_ids[None, :] == candidate_ids[: len(read), None]
    )
    same_question = questions[owner_of][None, :] == questions[:, None]
    allowed = ~same_text & (own | ~same_question)
    index = torch.arange(len(read))
    allowed[index, index] = True
    return owner_of[len(read) :], allowed


def contrastive(anchors: Any, candidates: Any, allowed: Any, *, temperature: float) -> Any:
    """Return the examples' mean cross-entropy: -log of the positive's softmax among the allowed candidates.

    Source: Ji, Si, Lin et al. 2024, eq. 6. The softmax's sum includes every example's positive and hard negatives, as
    in Gao, Yao and Chen 2021 (SimCSE), eq. 5.

    Args:
        anchors: float32 [examples, dims].
        candidates: float32 [examples + negatives, dims], starting with the positives in the anchors' order.
        allowed: bool [examples, examples + negatives].
        temperature: Temperature of the softmax.

    Returns:
        float32 scalar, at least 0.
    """
    logits = (anchors @ candidates.T / temperature).masked_fill(~allowed, _NEVER)
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(anchors), device=logits.device))


def ranking(positive_cosines: Any, negative_cosines: Any, *, temperature: float) -> Any:
    """Return log(1 + Σ exp((cos_negative - cos_positive) / temperature)) over all pairs of a negative and a positive.

    The contrastive loss compares only answers to the same question; this loss ranks every right pair in the batch above
    every wrong pair.

    Args:
        positive_cosines: float32 [positives].
        negative_cosines: float32 [negatives]. Without negatives, the result is 0.
        temperature: Divisor of the differences.

    Returns:
        float32 scalar, at least 0.
    """
    # The sum over pairs equals the product of two sums.
    pairs = torch.logsumexp(negative_cosines / temperature, 0) + torch.logsumexp(-positive_cosines / temperature, 0)
    return torch.nn.functional.softplus(pairs)


def keeping(now: Any, before: Any) -> Any:
    """Return 100 times the mean squared change in the cosines between texts; 1 means a change of 0.1 in each cosine.

    Args:
        now: float32 [texts, dims] from the trained encoder.
        before: float32 [texts, dims] from its base.

    Returns:
        float32 scalar, at least 0.
    """
    return 100 * torch.nn.functional.mse_loss(now @ now.T, before @ before.T)
