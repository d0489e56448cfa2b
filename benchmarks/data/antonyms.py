"""Write `server/src/gradewire_server/metrics/text/antonyms.txt`, the antonyms in WordNet 3.0's files.

The file starts with the notice that Princeton's licence requires, like WordNet's own files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gradewire_server.lexicon import usual_directory

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "server" / "src" / "gradewire_server" / "metrics" / "text" / "antonyms.txt"
PARTS = ("adj", "adv", "noun", "verb")


def main() -> None:
    """Read the files and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wordnet", type=Path, default=usual_directory(), help="directory of WordNet's files")
    parser.add_argument("--out", type=Path, default=TABLE)
    options = parser.parse_args()
    options.out.write_text(antonym_table(options.wordnet), encoding="ascii")


def antonym_table(directory: Path) -> str:
    """Return the licence in lines with "#", then each pair of single words, in alphabetical order."""
    notice = [line for line in _lines(directory, "adj") if line.startswith("  ")]
    licence = "".join(f"# {line.split(maxsplit=1)[1].rstrip()}\n" for line in notice if len(line.split()) > 1)
    pairs = sorted(set().union(*(_pairs(directory, part) for part in PARTS)))
    return licence + "".join(f"{one} {other}\n" for one, other in pairs)


def _pairs(directory: Path, part: str) -> set[tuple[str, str]]:
    senses: dict[str, tuple[list[str], list[list[str]]]] = {}
    for line in _lines(directory, part):
        # An opposite is a pointer of both senses, so the many senses without one need no reading.
        if line.startswith("  ") or " ! " not in line:
            continue
        fields = line.partition("|")[0].split()
        end = 4 + 2 * int(fields[3], 16)
        words = [word.partition("(")[0].lower() for word in fields[4:end:2]]
        count = int(fields[end])
        pointers = [fields[end + 1 + 4 * number : end + 5 + 4 * number] for number in range(count)]
        senses[fields[0]] = words, pointers
    found = set()
    for words, pointers in senses.values():
        for symbol, offset, _, ends in pointers:
            if symbol == "!":
                here, there = bytes.fromhex(ends)
                pair = words[here - 1], senses[offset][0][there - 1]
                if all(map(str.isalpha, pair)):
                    found.add((min(pair), max(pair)))
    return found


def _lines(directory: Path, part: str) -> list[str]:
    return (directory / f"data.{part}").read_text(encoding="ascii").splitlines()


if __name__ == "__main__":
    main()
