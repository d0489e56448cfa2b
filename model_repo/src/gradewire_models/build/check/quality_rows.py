"""Rows to measure a variant on: question, references and answer each; from a file, or 504 of our own."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from gradewire_models.errors import BuildError

ROWS = 500

# Question, references (separated by |), another way to say it, a wrong answer.
_FACTS = (
    ("What is the man stirring the vegetables in?", "wok|pan", "a deep frying pan", "a teapot"),
    ("What animal is asleep on the window sill?", "cat", "a grey kitten", "a puppy"),
    ("How many candles are on the cake?", "7|seven", "seven small ones", "nine"),
    ("Which metal is liquid at room temperature?", "mercury|quicksilver", "Hg, that is mercury", "gallium nitride"),
    ("What does the sign at the corner say?", "stop", "it tells drivers to stop", "no parking"),
    ("Who painted the ceiling of the Sistine Chapel?", "Michelangelo|Michelangelo Buonarroti", "Buonarroti", "Raphael"),
    ("What is the capital of Australia?", "Canberra", "the city of Canberra", "Sydney"),
    ("Is the woman wearing a hat?", "yes", "yes, a wide straw hat", "no"),
    ("Is the shop open?", "no", "it is closed", "yes"),
    ("What colour is the umbrella?", "red|dark red", "crimson", "navy blue"),
    ("In which year did the first people walk on the Moon?", "1969", "July 1969", "1972"),
    ("What is the largest planet of the solar system?", "Jupiter", "the gas giant Jupiter", "Saturn"),
    ("What are the children building on the beach?", "sandcastle|a castle of sand", "a castle", "a snowman"),
    ("Which instrument is the girl playing?", "cello|violoncello", "a bowed string instrument", "a trumpet"),
    ("Where is the bicycle leaning?", "against the wall|on a brick wall", "at the side of a house", "under a tree"),
    ("What is water made of?", "hydrogen and oxygen|H2O", "two gases: oxygen and hydrogen", "carbon dioxide"),
    ("Who wrote The Hobbit?", "J. R. R. Tolkien|Tolkien", "John Ronald Reuel Tolkien", "C. S. Lewis"),
    ("What time does the clock show?", "ten past four|4:10", "a little after four", "half past nine"),
    ("What is on top of the pizza?", "mushrooms and olives|mushrooms|olives", "fungi and black olives", "pineapple"),
    ("Which sport is being played?", "cricket", "a game with a flat bat and wickets", "baseball"),
    ("What is the weather like?", "rainy|raining|wet", "it is pouring", "sunny"),
    ("What is the boy holding in his left hand?", "kite string|a string", "the line of a kite", "a balloon"),
    ("How is the mountain in the background called?", "Matterhorn|Mont Cervin", "Monte Cervino", "Mont Blanc"),
    ("What carries oxygen in the blood?", "hemoglobin|haemoglobin", "the red pigment, haemoglobin", "insulin"),
    ("Which language is spoken in Brazil?", "Portuguese", "Brazilian Portuguese", "Spanish"),
    ("What is the dog chasing?", "frisbee|a flying disc", "a plastic disc", "a squirrel"),
    ("How many legs does a spider have?", "eight|8", "four pairs of legs", "six"),
    ("What keeps the tent in place?", "pegs|tent pegs|stakes", "metal pins in the ground", "glue"),
    ("Which river flows through Vienna?", "Danube|Donau", "the Danube river", "the Rhine"),
    ("What is the name of the longest bone of the body?", "femur|thigh bone", "the bone of the thigh", "the tibia"),
    ("What does the bakery sell?", "bread|bread and rolls", "loaves and rolls", "shoes"),
    ("What is behind the fence?", "a horse|horse", "a brown mare", "two cows"),
    ("Who developed the theory of general relativity?", "Albert Einstein|Einstein", "A. Einstein, in 1915", "Newton"),
    ("What is the smallest prime number?", "2|two", "the number two", "1"),
    ("Which season is it?", "autumn|fall", "late in the year, leaves are falling", "spring"),
    ("What is the vase made of?", "glass|clear glass", "it is transparent, so glass", "clay"),
    ("Why is the street blocked?", "a fallen tree|tree on the road", "because a tree came down", "a parade"),
    ("What is the currency of Japan?", "yen|Japanese yen", "the yen", "won"),
    ("What is the nurse measuring?", "blood pressure", "the pressure of the blood", "the height"),
    ("Which bird is on the branch?", "owl|barn owl", "a night bird with round eyes", "a parrot"),
    ("What did Alexander Fleming discover?", "penicillin", "the first antibiotic", "radium"),
    ("What is written on the side of the bus?", "school bus|SCHOOL BUS", "that it is a bus for pupils", "taxi"),
)
_STYLES = (
    "{reference}",
    "{other}",
    "{wrong}",
    "It is {reference}.",
    "I think the answer is {other}, but I cannot be sure.",
    "Most likely {wrong}.",
    "The answer to your question is: {reference}",
    "{wrong}; it is certainly not {reference}",
    "Judging by what can be seen, one would say {other}. There are other possibilities, {wrong} among them.",
    "This cannot be told from what is given.",
    "Well, {wrong} comes to mind first, as many people say so, but in fact it has always been {reference}.",
    "{question} That is {wrong}.",
)


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A question, what may be answered, and what was."""

    question: str
    references: tuple[str, ...]
    prediction: str


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """Rows and where they are from.

    Attributes:
        rows: At least one.
        origin: For people.
        sha256: Over all rows, 64 hex characters.
    """

    rows: tuple[AnswerRow, ...]
    origin: str
    sha256: str


def own_rows() -> AnswerRows:
    """42 facts in 12 ways to answer, right and wrong ones, short and long ones."""
    rows = []
    for question, references, other, wrong in _FACTS:
        accepted = tuple(references.split("|"))
        words = {"question": question, "reference": accepted[0], "other": other, "wrong": wrong}
        rows += [AnswerRow(question, accepted, style.format(**words)) for style in _STYLES]
    return _collect(rows, "gradewire's own rows")


def read_rows(path: Path) -> AnswerRows:
    """Reads rows from JSON lines with ``question``, ``references`` and ``prediction``; of more than 500, 500 evenly.

    Raises:
        BuildError: The file cannot be read, or a line lacks one of the three.
    """
    rows = []
    try:
        # Not splitlines, which also cuts at characters that JSON allows inside a text.
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError(f"cannot read {path}: {error}") from error
    if lines == [""]:
        raise BuildError(f"{path} has no rows")
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            references = tuple(row["references"])
            found = AnswerRow(row["question"], references, row["prediction"])
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise BuildError(f"{path}, line {number}: no question, references and prediction ({error})") from error
        texts = (found.question, found.prediction, *references)
        if not references or not all(isinstance(text, str) and text.strip() for text in texts):
            raise BuildError(f"{path}, line {number}: a text is empty or no text")
        rows.append(found)
    if len(rows) > ROWS:
        rows = [rows[place * len(rows) // ROWS] for place in range(ROWS)]
    return _collect(rows, path.name)


def _collect(rows: list[AnswerRow], origin: str) -> AnswerRows:
    lines = [json.dumps([row.question, row.references, row.prediction], ensure_ascii=False) for row in rows]
    return AnswerRows(tuple(rows), origin, hashlib.sha256("\n".join(lines).encode()).hexdigest())
