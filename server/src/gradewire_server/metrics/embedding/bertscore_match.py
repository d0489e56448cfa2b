"""Greedy matching of tokens by cosine, one prediction with many references at a time.

Source: Zhang et al. 2020, "BERTScore", equations of section 3 (recall, precision, F1, importance weighting, baseline
rescaling), as the package bert-score 0.3.13 computes them: the tokens around a text weigh nothing, and may be matched.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gradewire_server.domain.needs import DocumentFrequencies, TokenVectors

_TINY = 1e-12


def match(
    prediction: TokenVectors, references: Sequence[TokenVectors], corpus: DocumentFrequencies | None, question_end: int
) -> NDArray[np.float64]:
    """Compares a prediction with each reference.

    Args:
        prediction: Of a hidden layer; a token of it weighs more than 0.
        references: Likewise, at least one; they may weigh nothing.
        corpus: Weighs tokens by how rare they are; None weighs all alike.
        question_end: As in `weights`.

    Returns:
        float64[references, 3]: precision, recall and F1, -1 to 1 each. F1 is 0 where one of the others is not above 0:
        they have no harmonic mean. -inf in the row of a reference that weighs nothing, for it has no recall.
    """
    values = np.full((len(references), 3), -np.inf)
    weighed = [weights(reference, corpus, question_end) for reference in references]
    having = [index for index, each in enumerate(weighed) if each.any()]
    if not having:
        return values
    starts = np.cumsum([0, *(len(weighed[index]) for index in having[:-1])])
    cosines = _unit(prediction.tokens) @ _unit(np.concatenate([references[index].tokens for index in having])).T
    own = weights(prediction, corpus, question_end)
    precision = own @ np.maximum.reduceat(cosines, starts, axis=1) / own.sum()
    theirs = np.concatenate([weighed[index] for index in having])
    recall = np.add.reduceat(theirs * cosines.max(axis=0), starts) / np.add.reduceat(theirs, starts)
    both = (precision > 0) & (recall > 0)
    f1 = np.divide(2 * precision * recall, precision + recall, out=np.zeros_like(recall), where=both)
    values[having] = np.stack((precision, recall, f1), axis=1).clip(-1.0, 1.0)
    return values


def behind_question(question: str, answer: str) -> str:
    """The text that stands for an answer where the question is compared with it."""
    return f"{question} {answer}"


def weights(text: TokenVectors, corpus: DocumentFrequencies | None, question_end: int) -> NDArray[np.float64]:
    """Weight of each token, 0 or more.

    Args:
        text: Whose tokens.
        corpus: See `match`.
        question_end: Where the question before the answer ends, in characters: of a text that was cut before its answer
            begins no token weighs anything. 0 where there is no question.
    """
    counted = text.ids >= 0
    if not (counted & (text.offsets[:, 1] > question_end)).any():
        return np.zeros(len(counted))
    if corpus is None:
        return counted.astype(np.float64)
    ids, places = np.unique(text.ids, return_inverse=True)
    documents = np.array([corpus.counts.get(number, 0) for number in ids.tolist()], np.float64)
    return np.where(counted, np.log((corpus.documents + 1) / (documents + 1))[places], 0.0)


def rescaled(values: NDArray[np.float64], baseline: tuple[float, float, float] | None) -> NDArray[np.float64]:
    """`match`'s values stretched so that those of unrelated texts, the baseline, become 0 and 1 stays 1."""
    base = np.array(baseline, np.float64)
    return np.asarray((values - base) / (1 - base), np.float64)


def _unit(tokens: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.einsum("ij,ij->i", tokens, tokens))
    return np.asarray(tokens / np.maximum(lengths, _TINY)[:, None], np.float32)
