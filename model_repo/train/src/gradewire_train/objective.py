"""The loss of SFVE's training: its contrastive loss, a ranking across questions, and the change of the base's cosines.

Vectors are of unit length throughout, so a dot product is a cosine.
"""

from collections.abc import Sequence
from typing import Any

import torch

from gradewire_train.examples import Example, texts

_NEVER = -1e9


def group(examples: Sequence[Example]) -> tuple[Any, Any]:
    """Find which candidates may stand against which positives in the examples of one batch.

    Not allowed: a candidate whose text is the anchor's or the positive's own (it would be punished for being right),
    and another example's candidate to the same question (it may mean the same in other words).

    Returns:
        int64 [negatives], the index of the example that each hard negative belongs to; bool [examples, examples +
        negatives], the candidates, all positives and then all hard negatives, that may stand against an example's
        positive. Its own positive is always among them.
    """
    read = [texts(example) for example in examples]
    owner = [index for index, each in enumerate(read) for _ in each[2:]]
    candidates = [each[1] for each in read] + [text for each in read for text in each[2:]]
    owners = [*range(len(read)), *owner]
    numbers: dict[str, int] = {}
    candidate_ids = torch.tensor([numbers.setdefault(text, len(numbers)) for text in candidates])
    anchor_ids = torch.tensor([numbers.setdefault(each[0], len(numbers)) for each in read])
    # A text without a question is its own question: such examples have nothing in common.
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
    """Mean over the examples of -log softmax of the own positive among all candidates that are allowed.

    Source: Ji, Si, Lin et al. 2024, eq. 6, with the sum over every example's positive and hard negatives, as in Gao,
    Yao and Chen 2021 (SimCSE), eq. 5.

    Args:
        anchors: float32 [examples, dims].
        candidates: float32 [examples + negatives, dims]: the positives in the order of the anchors come first.
        allowed: bool [examples, examples + negatives].
        temperature: Of the softmax.

    Returns:
        float32 scalar, at least 0.
    """
    logits = (anchors @ candidates.T / temperature).masked_fill(~allowed, _NEVER)
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(anchors)))


def ranking(positive_cosines: Any, negative_cosines: Any, *, temperature: float) -> Any:
    """log(1 + Σ exp((cos_negative - cos_positive) / temperature)) over all pairs of the two.

    The contrastive loss compares answers to one question; scores are also compared across questions, which this asks
    for: every right pair of the batch above every wrong one.

    Args:
        positive_cosines: float32 [positives].
        negative_cosines: float32 [negatives]; none of them gives 0.
        temperature: Differences are divided by it.

    Returns:
        float32 scalar, at least 0.
    """
    # The sum over pairs is the product of two sums.
    pairs = torch.logsumexp(negative_cosines / temperature, 0) + torch.logsumexp(-positive_cosines / temperature, 0)
    return torch.nn.functional.softplus(pairs)


def keeping(now: Any, before: Any) -> Any:
    """Mean squared change of the cosines between texts, in hundreds: 1 is a change of 0.1 each.

    Args:
        now: float32 [texts, dims] of the encoder that is trained.
        before: float32 [texts, dims] of its base.

    Returns:
        float32 scalar, at least 0.
    """
    return 100 * torch.nn.functional.mse_loss(now @ now.T, before @ before.T)
