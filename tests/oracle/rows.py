"""Rows for the oracle: composed here from our own words, the same on every machine, plus the project's examples."""

import json
import unicodedata
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"

ANIMALS = ("cat", "two dogs", "a brown horse", "geese", "the black sheep", "3 mice")
PLACES = (
    "on the kitchen table",
    "under an old bridge",
    "in Zürich",
    "near São Paulo",
    "by the lake, at noon",
    "upstairs",
)
DEEDS = ("sleeping", "eating apples", "running away", "watching the children", "waiting for a bus", "being fed")
THINGS = ("wok", "fire hydrant", "wooden ladder", "red umbrella", "T-shirt", "snow-covered bench")
NAMES = ("Ada Lovelace", "J. R. R. Tolkien", "Gabriel García Márquez", "Marie Curie", "李白", "O'Neill")
NUMBERS = ("1,969", "3.14", "seven", "42%", "1990s", "-5 °C")
ODD = ("?!", "...", "🐈 🐈", "naïve café", "İstanbul", "snake_case words", "don't—won't", "Ἀθῆναι")

# References (separated by |) and prediction; the fields are filled from the lists above, each at its own pace.
TEMPLATES = (
    ("{animal}", "{animal}"),
    ("{animal}|{animal2}", "I see {animal} {place}."),
    ("{animal} {place}", "There is something {place}; it could be {animal2}."),
    ("{deed}", "It is {deed} {place}!"),
    ("{deed}|{deed2}|{animal} {deed}", "{animal2} {deed2}"),
    ("{thing}", "The picture shows {animal} {place}, {deed}, and beside it there is a {thing2}."),
    ("{thing}|a {thing}|the {thing}", "{thing2}"),
    ("{name}", "{name2}"),
    ("{name}|{name2}", "It was written by {name} in {number}."),
    ("{name} in {number}", "{name}"),
    ("{number}", "about {number2}"),
    ("{number}|{number2}", "The answer is {number2}, as far as I know."),
    ("yes", "Yes, {animal} is {deed}."),
    ("no", "yes"),
    ("No.", "I am not able to tell what is {place}."),
    ("{odd}", "{odd2}"),
    ("{odd}|{thing}", "{thing2} {odd}"),
    ("{animal} {deed} {place}", "{animal} {deed} {place}"),
    ("{animal} {animal} {thing}", "{animal} {thing} {thing}"),
    ("{name}|{thing}|{number}|{animal}|{deed}", "Well, {name2} had a {thing} for {number2} years, or so they say."),
)


@dataclass(frozen=True)
class Row:
    """One answer with its references, NFC-normalised."""

    references: tuple[str, ...]
    prediction: str


def _composed() -> list[Row]:
    rows = []
    for i in count():
        references, prediction = TEMPLATES[i % len(TEMPLATES)]
        turn = i // len(TEMPLATES)
        fields = {}
        for pace, (name, values) in enumerate(
            zip(
                ("animal", "place", "deed", "thing", "name", "number", "odd"),
                (ANIMALS, PLACES, DEEDS, THINGS, NAMES, NUMBERS, ODD),
                strict=True,
            )
        ):
            first = (turn + i * pace) % len(values)
            fields[name] = values[first]
            fields[f"{name}2"] = values[(first + (2 * turn + i) % 4) % len(values)]
        rows.append(Row(tuple(references.format(**fields).split("|")), prediction.format(**fields)))
        if len(rows) == 300:
            break
    return rows


def _long() -> list[Row]:
    """Answers that reach the limits: more windows than are looked at, more tokens than the encoder reads."""
    words = [f"{thing.split()[-1]}{number}" for number in range(43) for thing in THINGS[:4]]
    verbose = " ".join(
        f"{animal} {deed} {place}." for animal in ANIMALS for deed, place in zip(DEEDS, PLACES, strict=True)
    )
    return [
        Row(("ladder7", "wok3 hydrant3", "a red umbrella"), " ".join(words)),
        Row(("waiting for a bus", "sheep"), f"{verbose} {verbose}"),
        Row(("ha", "ha ha"), "ha " * 1100 + "end"),
    ]


def _special() -> list[Row]:
    """The composed rows lack: repeated words in a reference, references of one length that draw different windows.

    The first two are answered by one reference word for word and better by another one, whose words stand apart.
    """
    return [
        Row(("mat", "black cat on mat"), "the black cat sat quietly on the mat"),
        Row(("Tuesday", "two boats left the harbour on Tuesday"), "On Tuesday two old boats left the small harbour."),
        Row(("red red umbrella",), "It was a red hat."),
        Row(("the wok and the ladder", "the bench and the bus"), "I can see the ladder over there."),
        Row(("kitten", "lorry", "yellow"), "A cat, a truck, a banana, a spoon, a house, a cloud and a coin."),
        Row(
            ("piano", "Tuesday", "rain", "soup"),
            "Music was played on the second day of the week while we ate in bad weather.",
        ),
        Row(
            ("young dog", "big car", "old man"),
            "Some puppies sat in the van that my grandfather had bought last winter.",
        ),
    ]


def _examples() -> list[Row]:
    rows = []
    for path in sorted(EXAMPLES.glob("*.jsonl")):
        for line in islice(path.read_text(encoding="utf-8").splitlines(), 80):
            fields = json.loads(line)
            if fields.get("references") and fields.get("prediction"):
                rows.append(Row(tuple(fields["references"]), fields["prediction"]))
    return rows


def oracle_rows() -> list[Row]:
    """At least 300 rows that can be graded: several references, verbose answers, numbers, all sorts of characters."""

    def nfc(text: str) -> str:
        return unicodedata.normalize("NFC", text)

    return [
        Row(tuple(map(nfc, row.references)), nfc(row.prediction))
        for row in [*_composed(), *_special(), *_long(), *_examples()]
    ]
