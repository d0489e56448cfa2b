"""Write each promise's measured values into benchmarks/results/promises.md.

Reads the JSON lines that `make test-hostile` wrote. The last measurement of a value counts. Values without a bound are
skipped.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.common.measurements import Measurement, read, write_block

PAGE: Final = Path(__file__).resolve().parents[2] / "benchmarks/results/promises.md"
BLOCK: Final = "figures"
_HEADS: Final = ("promise", "figure", "measured", "promised", "load", "held by")


def table(measurements: Sequence[Measurement]) -> str:
    """Return Markdown with date, machine and a row for each value with a bound."""
    measurements = [each for each in measurements if each.bound]
    if not measurements:
        raise ValueError("the file has no measurements. Run: make test-hostile")
    order = list(dict.fromkeys(each.promise for each in measurements))
    rows = [
        (
            each.promise,
            each.name.replace("|", "\\|"),
            each.measured if each.holds else f"**{each.measured}**",
            each.bound,
            f"{each.load:g}",
            f"`{each.source}`",
        )
        for each in sorted(measurements, key=lambda figure: order.index(figure.promise))
    ]
    dates = sorted({each.date for each in measurements})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    missed = sum(not each.holds for each in measurements)
    said = f"Measured {when} on {', '.join(sorted({each.machine for each in measurements}))}."
    said += (
        f" **{missed}** of {len(measurements)} measurements miss their promise."
        if missed
        else " All keep their promises."
    )
    lines = [f"| {' | '.join(row)} |" for row in (_HEADS, ("---",) * len(_HEADS), *rows)]
    return "\n".join((said, "", *lines))


def main() -> None:
    """Read the measurements and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path, help="file of JSON lines")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    write_block(options.page, BLOCK, table(read(options.figures)))


if __name__ == "__main__":
    main()
