"""The file of judged pairs: only ever added to, so that a kill at any moment leaves every pair that was judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from gradewire.cli.choosing.pair_file import line_of, read_lines
from gradewire.cli.choosing.pairs import Choice
from gradewire.cli.input.record import Record
from gradewire.cli.leaderboard.answers import texts_digest
from gradewire.cli.leaderboard.reading import PAIR_COLUMNS, judged_pair
from gradewire.cli.output.result_rows import encode_row
from gradewire.cli.problems import InputError, named_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gradewire.cli.choosing.choosers import Chosen
    from gradewire.cli.leaderboard.pairs import JudgedPair


@dataclass(slots=True)
class PairStore:
    """Judged pairs of this run and of those before it; use it with `with`.

    Attributes:
        path: The file; None keeps them in memory alone.
        identity: Of the chooser: it stands in every line.
        pairs: By the models and the instruction, in the order in which they were first judged.
    """

    path: Path | None
    identity: Mapping[str, Any]
    pairs: dict[tuple[str, frozenset[str]], JudgedPair] = field(default_factory=dict)
    _stream: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def open(self, *, resume: bool, overwrite: bool) -> None:
        """Reads what is there where it is to be resumed, and cuts off a torn last line.

        Raises:
            InputError: The file is there already, cannot be written, holds no pairs, or those of another chooser.
        """
        if self.path is None:
            return
        if self.path.exists() and not (resume or overwrite):
            raise InputError(f"{self.path} is there already: give --resume to go on with it, or --overwrite")
        with named_errors(self.path):
            end = self._read(self.path) if resume and self.path.exists() else 0
            self._stream = self.path.open("r+b" if self.path.exists() else "w+b")
            self._stream.truncate(end)
            self._stream.seek(end)

    def _read(self, path: Path) -> int:
        with path.open("rb") as stream:
            for number, (begin, line) in enumerate(read_lines(path)):
                for name, value in self.identity.items():
                    if line.get(name) != value:
                        raise InputError(
                            f"{path} was judged with {name} {line.get(name)!r} and this run judges with {value!r}: "
                            "give the same options, another --out, or --overwrite"
                        )
                stream.seek(begin)
                stream.readline()
                if not Choice.of_line(line).may_pass:
                    self._take(line, number)
            return stream.tell()

    def _take(self, line: Mapping[str, Any], number: int) -> None:
        try:
            pair = judged_pair(Record(number, f"line {number + 1}", line), PAIR_COLUMNS)
        except ValueError as error:
            raise InputError(f"{self.path}: line {number + 1}: {error}: give another --out") from error
        # An id that looks like a list of turns is read as their text elsewhere; here it has to be what answers have.
        if isinstance(instruction := line.get("instruction_id"), str):
            pair = replace(pair, instruction=instruction)
        self.pairs[pair.key] = pair

    def write(self, chosen: Sequence[Chosen], *, round_number: int | None = None) -> None:
        """Keeps pairs, and writes and flushes them; raises InputError where they cannot be written."""
        told = {} if round_number is None else {"round": round_number}
        lines = [
            line_of(pair, choice, self.identity) | {"digest": texts_digest(pair)} | told for pair, choice in chosen
        ]
        if self._stream is not None:
            with named_errors(self.path, hint="--resume goes on from what is there"):
                self._stream.writelines(map(encode_row, lines))
                self._stream.flush()
        for line in lines:
            self._take(line, len(self.pairs))
