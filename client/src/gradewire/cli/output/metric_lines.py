"""Whether an output file and a run compute the same: their metric lines, compared."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradewire.cli.problems import InputError


def check_lines(path: Path, row: Mapping[str, Any], lines: Mapping[str, str]) -> None:
    """Refuses to mix scores of different definitions: those of a row of an output file, and what a run computes.

    Raises:
        InputError: Says what differs.
    """
    there = {label: score.get("line", "") for label, score in row["scores"].items()}
    if there == lines:
        return
    way_out = "give the same options, another --out, or --overwrite"
    if there.keys() != lines.keys():
        raise InputError(
            f"{path} has the metrics {', '.join(there)} and this run computes {', '.join(lines)}: {way_out}"
        )
    differing = next(label for label in there if there[label] != lines[label])
    raise InputError(
        f"{path} differs in {_difference(there[differing], lines[differing])} of {differing}: the file has "
        f"{there[differing] or 'nothing'} and this run computes {lines[differing] or 'nothing'}: {way_out}"
    )


def _difference(there: str, here: str) -> str:
    def parts(line: str) -> dict[str, str]:
        head, _, parameters = line.partition("?")
        definition, _, version = head.partition("/")
        named = dict(pair.split("=", 1) for pair in parameters.split("&") if "=" in pair)
        return {"preset": definition.partition(":")[2], "version": version, **named}

    before, now = parts(there), parts(here)
    return " and ".join(sorted(name for name in before | now if before.get(name) != now.get(name))) or "the line"
