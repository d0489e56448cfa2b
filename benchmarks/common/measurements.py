"""Write measured values as text or JSON lines, and replace generated blocks in docs/."""

import dataclasses
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_BOUND: Final = re.compile(r"(<=|<|>=|>|==) (-?\d+(?:\.\d+)?)")


def machine() -> str:
    """Return this machine's number of cores and widest vector instructions."""
    cpu = Path("/proc/cpuinfo")
    flags = set(cpu.read_text().split()) if cpu.exists() else set()
    vectors = next((name for name in ("avx512f", "avx2", "asimd") if name in flags), platform.machine())
    return f"{os.cpu_count()} cores, {vectors.removesuffix('f').upper()}"


@dataclass(frozen=True)
class Measurement:
    """A measured value for a promise.

    Attributes:
        promise: Name in docs/operate/promises.md, for example "overload".
        name: Measured quantity, for example "refused without a hint, 2x".
        unit: Unit of the value; "" for counts.
        bound: Promised limit, for example `<= 50`; "" if nothing is promised.
        source: ID of the test, or the command.
    """

    promise: str
    name: str
    value: float
    unit: str
    bound: str
    source: str
    load: float = field(default_factory=lambda: round(os.getloadavg()[0], 1))
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    machine: str = field(default_factory=machine)

    def __post_init__(self) -> None:
        if self.bound and not _BOUND.fullmatch(self.bound):
            raise ValueError(f"bound {self.bound!r} must have the format '<= 50' (<, <=, ==, >=, >) or be empty")

    @property
    def holds(self) -> bool:
        """True if the value is within its bound, or has no bound."""
        found = _BOUND.fullmatch(self.bound)
        if found is None:
            return True
        limit = float(found[2])
        return {
            "<": self.value < limit,
            "<=": self.value <= limit,
            "==": self.value == limit,
            ">=": self.value >= limit,
            ">": self.value > limit,
        }[found[1]]

    @property
    def measured(self) -> str:
        """The value with its unit."""
        value = (
            f"{self.value:.0f}" if float(self.value).is_integer() or abs(self.value) >= 1000 else f"{self.value:.3g}"
        )
        return f"{value} {self.unit}".rstrip()

    def line(self) -> str:
        """Return the promise, name, value, unit and bound as a line of text."""
        bound = f" (promised: {self.bound})" if self.bound else ""
        return f"{self.promise}: {self.name}: {self.measured}{bound}{'' if self.holds else ': MISSED'}"


def append(path: Path, measurements: Iterable[Measurement]) -> None:
    """Append measurements to a JSON lines file; create the file if missing."""
    with path.open("a", encoding="utf-8") as lines:
        lines.writelines(json.dumps(dataclasses.asdict(each), ensure_ascii=False) + "\n" for each in measurements)


def show(measurements: Iterable[Measurement], path: Path | None) -> None:
    """Print a line for each measurement; with `path`, also append the measurements to this file."""
    measurements = list(measurements)
    for each in measurements:
        print(each.line(), flush=True)
    if path is not None:
        append(path, measurements)


def read(path: Path) -> Sequence[Measurement]:
    """Read a file's measurements; keep the last with each promise and name."""
    measurements = [Measurement(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    return list({(each.promise, each.name): each for each in measurements}.values())


def write_block(document: Path, name: str, block: str) -> None:
    """Replace a block in a page, and report the change on standard error.

    Raises:
        ValueError: The page lacks the block's marks.
    """
    document.write_text(with_block(document.read_text("utf-8"), name, block), "utf-8")
    sys.stderr.write(f"{document}: block {name} written\n")


def with_block(document: str, name: str, block: str) -> str:
    """Replace the content between a block's marks, `<!-- begin NAME -->` and `<!-- end NAME -->`.

    Raises:
        ValueError: The document does not have each mark once.
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(end) < document.index(begin):
        raise ValueError(f"the document needs {begin.strip()} and {end.strip()}, once each and in this order")
    before, _, rest = document.partition(begin)
    return f"{before}{begin}\n{block.strip()}\n\n{end}{rest.partition(end)[2]}"
