"""Choose a step's examples from seed and step alone, so that a resumed run reads the same examples."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gradewire_train import TrainingError
from gradewire_train.encoder import TokenIds, TrainedEncoder
from gradewire_train.examples import GROUPS, TASKS, Example, question_text, texts

_POOL_BATCHES = 32
_TOKENIZE_AT_ONCE = 4096


def chosen(examples: Sequence[Example], only: Sequence[str], without: Sequence[str]) -> list[Example]:
    """Return the examples of all tasks that `only` and `without` do not exclude.

    Raises:
        TrainingError: A task is unknown, or no example is left.
    """
    wanted = tasks_wanted(only, without)
    left = [example for example in examples if example.task in wanted]
    if not left:
        raise TrainingError("only, without: these settings exclude all examples")
    return left


def tasks_wanted(only: Sequence[str], without: Sequence[str]) -> set[str]:
    """Return the tasks in `only` that are not in `without`; both may contain groups. An empty `only` means all tasks.

    Raises:
        TrainingError: A task is unknown.
    """
    return (_tasks(only, "only") or set(TASKS)) - _tasks(without, "without")


def _tasks(names: Sequence[str], field: str) -> set[str]:
    unknown = sorted(set(names) - set(TASKS) - set(GROUPS))
    if unknown:
        raise TrainingError(f"{field}: unknown task {unknown[0]!r}. Tasks are {', '.join(TASKS)}")
    # A group's name stands for all its tasks, even if one of them has the same name.
    return {task for name in names for task in GROUPS.get(name, (name,))}


@dataclass(frozen=True, slots=True)
class Tokens:
    """Examples, and the token ids of every distinct text. The examples contain only the negatives that training uses.

    `plain` is for the loss's keep term. It contains the sorted distinct anchors and positives, without questions.
    """

    examples: Sequence[Example]
    ids: Mapping[str, TokenIds]
    plain: Sequence[str]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The total number of tokens in each example's texts, int64 [examples]."""
        return np.array([sum(len(self.ids[text]) for text in texts(each)) for each in self.examples], np.int64)


def tokenize(examples: Sequence[Example], encoder: TrainedEncoder, *, negatives: int, plain: bool) -> Tokens:
    """Tokenize each distinct text once, with at most `negatives` negatives per example.

    `Tokens.plain` is empty unless `plain` is True.
    """
    cut = [replace(example, negatives=example.negatives[:negatives]) for example in examples]
    bare = sorted({question_text("", each.anchor) for each in cut} | {each.positive for each in cut}) if plain else []
    read = {text for example in cut for text in texts(example)}
    return Tokens(cut, ids_by_text(read.union(bare), encoder.tokenize), bare)


def ids_by_text(
    distinct: Iterable[str], tokenize_some: Callable[[Sequence[str]], Iterable[TokenIds]]
) -> dict[str, TokenIds]:
    """Return each distinct text's token ids; limit memory by tokenizing in parts."""
    waiting = sorted(distinct)
    ids: dict[str, TokenIds] = {}
    for start in range(0, len(waiting), _TOKENIZE_AT_ONCE):
        some = waiting[start : start + _TOKENIZE_AT_ONCE]
        ids.update(zip(some, tokenize_some(some), strict=True))
    return ids


class Batches:
    """Batches of indices of texts with similar lengths. The order depends on `seed` and is different in every epoch.

    Each batch has `batch_size` indices, or all indices if there are fewer. `lengths` is int64 [texts].
    """

    def __init__(self, lengths: NDArray[np.int64], *, batch_size: int, seed: int) -> None:
        self._size = min(batch_size, len(lengths))
        self._seed = seed
        self._lengths = lengths
        self._epoch = -1
        self._order: NDArray[np.int64] = np.empty((0, self._size), np.int64)

    @property
    def per_epoch(self) -> int:
        """The number of full batches in an epoch."""
        return len(self._lengths) // self._size

    def __getitem__(self, step: int) -> NDArray[np.int64]:
        """Return the indices for `step`, counted from 0."""
        epoch, batch = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._shuffled(epoch)
        found: NDArray[np.int64] = self._order[batch]
        return found

    def _shuffled(self, epoch: int) -> NDArray[np.int64]:
        generator = np.random.default_rng([self._seed, epoch])
        drawn = generator.permutation(len(self._lengths))[: self.per_epoch * self._size]
        pool = _POOL_BATCHES * self._size
        pools = [drawn[start : start + pool] for start in range(0, len(drawn), pool)]
        by_length = np.concatenate([each[np.argsort(self._lengths[each], kind="stable")] for each in pools])
        return generator.permutation(by_length.reshape(self.per_epoch, self._size))


def plain_of_step(tokens: Tokens, *, count: int, seed: int, step: int) -> NDArray[np.int64]:
    """Return indices into `tokens.plain` for a step's keep term: int64 [count], or all indices if there are fewer."""
    generator = np.random.default_rng([seed, 1, step])
    return generator.choice(len(tokens.plain), size=min(count, len(tokens.plain)), replace=False)
