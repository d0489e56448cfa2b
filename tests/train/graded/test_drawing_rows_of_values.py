"""Kinds over values, read back by parsers of the tests' own: right rows have the reference's value, wrong ones not."""

import datetime as dt
import re
from fractions import Fraction

import pytest
from tests.train.graded.conftest import Rows

SIZES = {
    "m": 1, "km": 1000, "centimetres": 1, "metres": 100, "micrometres": 1, "mm": 1000, "grams": 1, "kg": 1000,
    "kilograms": 1000, "ml": 1, "litres": 1000, "Hz": 1, "kHz": 1000, "watts": 1, "kW": 1000, "mV": 1, "volts": 1000,
    "inches": 1, "feet": 12, "cents": 1, "dollars": 100, "MB": 1, "GB": 1000, "months": 1, "years": 12, "days": 1,
    "weeks": 7,
}  # fmt: skip
# What is larger than one of another pair: minutes are of hours or of seconds.
BY_QUESTION = {"seconds": 1, "minutes": 60}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}


def test_a_right_quantity_has_the_same_value_in_its_unit_and_a_wrong_one_another(rows: Rows) -> None:
    checked = 0
    for row in rows["unit"]:
        reference, answer = row.drawn.references[0], row.drawn.prediction
        found = re.search(r"(\d[\d,.]*\d|\d) (\w+)\b", answer)
        if found is None or found[2] not in SIZES or reference.split()[1] not in SIZES:
            continue
        values = [
            Fraction(number.replace(",", "")) * SIZES[unit] for number, unit in (reference.split(), found.groups())
        ]
        assert (values[0] == values[1]) == row.drawn.right, row
        checked += 1
    assert checked > 15


def test_a_right_date_is_the_same_day_and_a_wrong_one_another(rows: Rows) -> None:
    checked = 0
    for row in rows["same_sentence_date"]:
        days = [_day(row.drawn.references[0]), _day(row.drawn.prediction)]
        if None not in days:
            assert (days[0] == days[1]) == row.drawn.right, row
            checked += 1
    assert checked > 25


@pytest.mark.parametrize("kind", ["magnitude", "ledger"])
def test_a_wrong_amount_is_another_number(kind: str, rows: Rows) -> None:
    for row in rows[kind]:
        wanted = _amounts(row.drawn.references[0])[0]
        said = _amounts(row.drawn.prediction.partition(" was ")[2] or row.drawn.prediction)
        if kind == "magnitude" and len(said) == 1:
            assert (said[0] == wanted) == row.drawn.right, row
        if row.drawn.right:
            assert wanted in _amounts(row.drawn.prediction), row


def test_a_wrong_number_differs_in_a_digit(rows: Rows) -> None:
    for row in rows["digit"]:
        wanted = row.drawn.references[0].replace(",", "")
        said = re.sub(r"(?<=\d)[ ,](?=\d)", "", row.drawn.prediction)
        if not row.drawn.right:
            assert not re.search(rf"\b{wanted}\b", said), row
        elif "about" not in said and "bout" not in said:
            assert wanted in said, row


def test_a_right_year_lies_within_what_the_reference_says(rows: Rows) -> None:
    for row in rows["years_about"]:
        found = re.match(r"the (\d{4})s$|(?:between |from )?(\d{4})(?: and | to |-)(\d{4})$", row.drawn.references[0])
        said = [int(each) for each in re.findall(r"\b(?:1\d|20)\d\d\b", row.drawn.prediction)]
        if found is not None and len(said) == 1:
            low = int(found[1] or found[2])
            high = low + 9 if found[1] else int(found[3])
            assert (low <= said[0] <= high) == row.drawn.right, row


def test_lists_are_right_where_they_have_all_members_and_no_others(rows: Rows) -> None:
    for row in rows["list"]:
        wanted, said = set(row.drawn.meant.split("|")), set(row.drawn.said.split("|"))
        assert (wanted == said) == row.drawn.right
        assert all(member.lower() in row.drawn.prediction.lower() for member in said)
        assert all(member.lower() in row.drawn.references[0].lower() for member in wanted)
        assert not any(member.lower() in row.drawn.references[0].lower() for member in said - wanted if len(member) > 6)


def _day(text: str) -> dt.date | None:
    bare = re.sub(r"(?<=\d)(st|nd|rd|th)\b|\bof\b|\bthe\b|[.,]", " ", text)
    bare = " ".join(bare.split())
    for found in re.finditer(
        r"(\d{4})-(\d\d)-(\d\d)|([A-Z][a-z]+) (\d{1,2}) (\d{4})|(\d{1,2}) ([A-Z][a-z]+) (\d{4})", bare
    ):
        if found[1]:
            return dt.date(*(int(each) for each in found.groups()[:3]))
        month, day, year = (found[4], found[5], found[6]) if found[4] else (found[8], found[7], found[9])
        try:
            return dt.datetime.strptime(f"{month[:3]} {day} {year}", "%b %d %Y").replace(tzinfo=dt.UTC).date()
        except ValueError:
            continue
    return None


def _amounts(text: str) -> list[Fraction]:
    found = re.findall(r"(\d[\d,]*(?:\.\d+)?)(?:e(\d+)| ?(thousand|million|billion|trillion|M)\b)?", text)
    return [
        Fraction(number.replace(",", ""))
        * (10 ** int(power) if power else SCALES.get("million" if name == "M" else name, 1))
        for number, power, name in found
    ]
