"""The file of pairs: a line for each, in order, and found again after a break.

A run that goes on moves what is there to FILE.resume and writes FILE anew from it, so that a kill at any moment leaves
every pair that was judged in one of the two.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from gradewire.cli.choosing.pairs import Choice
from gradewire.cli.output.result_rows import encode_row
from gradewire.cli.output.results_file import files_of
from gradewire.cli.problems import InputError, named_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gradewire.cli.choosing.choosers import Chooser, Chosen
    from gradewire.cli.choosing.pairs import AnswerPair

_NEEDED = ("digest", "winner", "status", "by")


def line_of(pair: AnswerPair, choice: Choice, identity: Mapping[str, Any]) -> dict[str, Any]:
    """A line of the file, as `gradewire leaderboard` reads it."""
    question = pair.a.row.question_id or pair.a.row.question_key
    scores = {
        label: {"a": pair.a.results[label].score, "b": pair.b.results[label].score}
        for label in pair.a.results
        if label in pair.b.results
    }
    told = {
        "probability_a": choice.probability_a,
        "probability_b": choice.probability_b,
        "probability_tie": choice.probability_tie,
    }
    return {
        "id": pair.id,
        "instruction_id": question or pair.id,
        "family": pair.a.row.group or pair.a.row.dataset,
        "question": pair.a.text("question"),
        "model_a": pair.model_a,
        "model_b": pair.model_b,
        "winner": choice.winner,
        "status": choice.status,
        **({"message": choice.message} if choice.message else {}),
        **told,
        "orders": list(choice.orders),
        "length_a_words": len(pair.a.text("prediction").split()),
        "length_b_words": len(pair.b.text("prediction").split()),
        "answer_a": pair.a.text("prediction"),
        "answer_b": pair.b.text("prediction"),
        **({"scores": scores} if scores else {}),
        **identity,
        "digest": pair.digest,
    }


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines of a file of pairs with their beginning (offset in bytes); a torn last line is left out.

    Raises:
        InputError: A line is none of a pair.
    """
    begin = 0
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                return
            try:
                pair = json.loads(line)
                complete = isinstance(pair, dict) and all(name in pair for name in _NEEDED)
            except (ValueError, RecursionError):
                complete = False
            if not complete:
                raise InputError(f"{path}: line {number} is no pair of gradewire compare: give another --out")
            yield begin, pair
            begin += len(line)


@dataclass(slots=True)
class PairFile:
    """A file of pairs under construction; use it with `with`.

    Attributes:
        path: The file.
        identity: Of the chooser: it stands in every line.
    """

    path: Path
    identity: Mapping[str, Any]
    _stream: BinaryIO | None = None
    _known: dict[str, int] = field(default_factory=dict)
    _earlier: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for stream in (self._stream, self._earlier):
            if stream is not None:
                stream.close()

    @property
    def _aside(self) -> Path:
        return files_of(self.path)[1]

    def open(self, *, resume: bool) -> None:
        """Begins the file, with what earlier runs left where it is to be resumed.

        Raises:
            InputError: It cannot be written, holds no pairs, or those of another chooser.
        """
        with named_errors(self.path):
            if resume:
                self._gather()
            else:
                self._aside.unlink(missing_ok=True)
            self._stream = self.path.open("wb")

    def _gather(self) -> None:
        """Moves the lines of earlier runs to FILE.resume, those that may turn out otherwise left out."""
        kept: dict[str, tuple[Path, int]] = {}
        for source in (self.path, self._aside):
            for begin, line in read_lines(source) if source.exists() else ():
                self._check(source, line)
                if not Choice.of_line(line).may_pass:
                    kept.setdefault(line["digest"], (source, begin))
        new = files_of(self.path)[2]
        with new.open("wb") as stream:
            for digest, (source, begin) in kept.items():
                self._known[digest] = stream.tell()
                with source.open("rb") as earlier:
                    earlier.seek(begin)
                    stream.write(earlier.readline())
        new.replace(self._aside)
        self._earlier = self._aside.open("rb")

    def _check(self, path: Path, line: Mapping[str, Any]) -> None:
        for name, value in self.identity.items():
            if line.get(name) != value:
                raise InputError(
                    f"{path} was chosen with {name} {line.get(name)!r} and this run chooses with {value!r}: give the "
                    "same options, another --out, or --overwrite"
                )

    def known(self, pair: AnswerPair) -> Choice | None:
        """What an earlier run said of a pair."""
        begin = self._known.get(pair.digest)
        if begin is None or self._earlier is None:
            return None
        self._earlier.seek(begin)
        return Choice.of_line(json.loads(self._earlier.readline()))

    def write(self, chosen: Sequence[Chosen]) -> None:
        """Appends pairs and flushes them; raises InputError where they cannot be written."""
        if self._stream is None:
            raise RuntimeError("open the file first")
        with named_errors(self.path, hint="--resume goes on from what is there"):
            self._stream.writelines(encode_row(line_of(pair, choice, self.identity)) for pair, choice in chosen)
            self._stream.flush()

    def finish(self) -> None:
        """Ends the file: all pairs are in it."""
        self._aside.unlink(missing_ok=True)


async def choose_all(
    pairs: Sequence[AnswerPair],
    chooser: Chooser,
    file: PairFile | None,
    *,
    anew: bool = False,
    done: Callable[[int], object] = lambda _: None,
) -> list[Chosen]:
    """Has every pair chosen, in order, and writes each as it comes; asks only for what no earlier run has.

    Args:
        pairs: All of them.
        chooser: Asked for those that `file` does not know.
        file: Opened; None keeps nothing.
        anew: Asks for every pair: of a chooser that costs nothing and goes by scores, which may have changed since.
        done: Told how many pairs are chosen.

    Raises:
        GradewireError: As `Chooser.choose`; what was written stands.
    """
    chosen: list[Chosen] = []

    def take(batch: Sequence[Chosen]) -> None:
        if file is not None:
            file.write(batch)
        chosen.extend(batch)
        done(len(chosen))

    known = file.known if file is not None and not anew else lambda _: None
    earlier = {pair.index: choice for pair in pairs if (choice := known(pair)) is not None}
    waiting = iter(pairs)

    def until(index: int) -> Iterator[Chosen]:
        """The pairs that earlier runs know, up to the one with this number."""
        for pair in waiting:
            if pair.index == index:
                return
            yield pair, earlier[pair.index]

    asked = (pair for pair in pairs if pair.index not in earlier)
    async for batch in chooser.choose(asked):
        take([each for pair, choice in batch for each in (*until(pair.index), (pair, choice))])
    take(list(until(-1)))
    return chosen
