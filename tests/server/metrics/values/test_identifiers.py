"""Codes, symbols and numbers that name a thing, compared character by character."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.values.identifiers import Identifier, identifier_conflict


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("What is the account number?", "8841 0073", "8841 0037"),
        ("What is the account number?", "88410073", "The number is 88410078."),
        ("Which gate?", "B22", "Gate B23"),
        ("Which version introduced it?", "1.21.0", "version 1.20.0"),
        ("What is the phone number?", "0161 496 0021", "0161 496 0012"),
        ("What is the serial number?", "XK-2209-B", "It's XK-2290-B"),
        ("Which flight did they take?", "BA 287", "BA 278"),
        ("What is the postcode?", "M1 4BT", "M1 4BD"),
        ("Which command lists files with details?", "ls -l", "ls -a"),
        ("Which function sorts a list in Python?", "sorted(xs)", "sort(xs)"),
        ("What is the chemical symbol of tin?", "Sn", "Sb"),
        ("What is the chemical symbol of cobalt?", "Co", "CO"),
        ("What unit is used for power?", "MW", "mW"),
        ("What is the PIN?", "0412", "412"),
        ("Which room?", "3.108", "room 3.180"),
        ("What is the formula of sulphuric acid?", "H2SO4", "H2SO3"),
        ("Wie lautet die Telefonnummer?", "030 901820", "030 901802"),
        ("Which regex matches a word character?", "\\w", "\\W"),
        ("What was the move?", "Bb5", "Bc5"),
        ("What is the ISBN?", "3-16-148410-X", "3-16-148410-0"),
        ("Which aircraft was it?", "A320", "It was an A330."),
        ("What is the registration number?", "CH-4471-KL", "CH-4417-KL"),
        ("Which bus goes to the airport?", "X12", "the X21"),
        ("Which key opens the menu?", "F10", "F12"),
        ("Which port does the server listen on?", "8443", "8080"),
        ("What port?", "8443", "port 8433"),
        ("What was the error code?", "0x80070005", "0x80070057"),
        ("Which Python version is needed?", "3.9", "3.8"),
        ("Which motorway?", "A7", "the A9"),
        ("What shortcut pastes?", "Ctrl+V", "Ctrl-C"),
        ("What is the hex code of the colour?", "#ff8800", "#ff0088"),
        ("What command shows the log?", "git log --oneline", "git log --graph"),
        ("Which method adds to the end?", "list.append()", "list.insert()"),
        ("Which vitamin is it?", "B12", "B6"),
        ("What is the order number?", "2024-00817", "2024-00871"),
        ("Which seat?", "14C", "14D"),
        ("What size is the paper?", "A4", "A3"),
        ("Which paragraph?", "\u00a7 242 BGB", "\u00a7 241 BGB"),
        ("What is the symbol for sodium?", "Na", "NA"),
        ("What is the unit of conductance?", "S", "s"),
        ("What's the symbol for magnesium?", "Mg", "mg"),
        ("What licence plate?", "M-AB 1234", "M-AB 1243"),
        ("What was Black's reply?", "Nf6", "Nc6"),
    ],
)
def test_another_identifier_of_the_same_form(question: str, reference: str, answer: str) -> None:
    assert identifier_conflict(question, answer, [reference]) == 1.0


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("What is the account number?", "8841 0073", "The account number is 88410073."),
        ("What is the account number?", "88410073", "8841-0073"),
        ("Which gate?", "B22", "gate b22"),
        ("Which version introduced it?", "v1.21.0", "It came with version 1.21.0 in 2019"),
        ("What is the phone number?", "0161 496 0021", "(0161) 496-0021"),
        ("Which flight did they take?", "BA 287", "Flight BA287 from London"),
        ("What is the postcode?", "M1 4BT", "M14BT"),
        ("Which command lists files with details?", "ls -l", "Use `ls -l`."),
        ("Which function sorts a list in Python?", "sorted(xs)", "sorted( xs )"),
        ("What is the chemical symbol of tin?", "Sn", "The symbol for tin is Sn."),
        ("What is the formula of sulphuric acid?", "H2SO4", "H\u2082SO\u2084"),
        ("What is the PIN?", "0412", "0412"),
        ("Which aircraft was it?", "A320", "an Airbus A320"),
        ("How many codes are there?", "120", "121"),
        ("What unit is used for force?", "newton", "Newton"),
        ("What unit is used for force?", "N", "the newton (N)"),
        ("Which vitamin?", "B12", "vitamin B12"),
        ("What is the speed of 5G?", "10 Gbit/s", "10 gbit/s"),
        ("When was version 3 released?", "2008", "in 2009"),
        ("Who has the phone?", "Anna", "Anna has it in room 12"),
        ("What symbol is on the flag?", "a maple leaf", "A red maple leaf"),
        ("What unit was he in?", "the 101st Airborne", "101st Airborne Division"),
        ("Which bus goes to the airport?", "X12", "Bus X12"),
        ("Which Python version is needed?", "3.9", "Python 3.9 or newer"),
        ("What was the error code?", "0x80070005", "error 0X80070005"),
        ("What command shows the log?", "git log --oneline", "$ git log --oneline"),
        ("Which seat?", "14C", "14 C"),
        ("What size is the paper?", "A4", "size a4"),
        ("What was Black's reply?", "Nf6", "1... Nf6"),
        ("What shortcut pastes?", "Ctrl+V", "ctrl + v"),
        ("What is the hex code of the colour?", "#ff8800", "FF8800"),
        ("Which HTTP method creates a resource?", "POST", "the POST method"),
        ("What port?", "8443", "8443/tcp"),
        ("What is the area code?", "020", "020 for London"),
        ("Which area code?", "0171 or 020", "020"),
        ("What is the version?", "Windows 11", "win 11"),
        ("What's the room?", "B12", "room B 12"),
        ("Which flight?", "Lufthansa 1482", "LH1482"),
        ("What is the phone number for emergencies?", "112", "You can dial 112 or 999"),
        ("What is the phone number for emergencies?", "112", "Dial one-one-two"),
        ("What is the zip code?", "90210", "90210-1234"),
        ("What command lists files?", "ls", "ls -l"),
        ("Which formula?", "E = mc\u00b2", "E=mc^2"),
        ("What unit is mass measured in?", "kg", "kilograms"),
        ("What unit is mass measured in?", "kilogram", "KG"),
        ("What element is it?", "gold", "Au"),
        ("What element is it?", "Iron", "iron"),
        ("What is the symbol of iron?", "Fe", "Fe (from Latin ferrum)"),
        ("Which class of ship?", "Type 45", "a Type 45 destroyer"),
        ("Which file is changed?", "main.py", "src/main.py"),
        ("Which type of vehicle is it?", "SUV", "suv"),
    ],
)
def test_the_same_identifier_or_none(question: str, reference: str, answer: str) -> None:
    assert identifier_conflict(question, answer, [reference]) != 1.0


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("020 7946 0112", "020-7946-0112"),
        ("4471 0098", "It is 44710098."),
        ("978-0-306-40615-7", "9780306406157"),
        ("v2.4.1", "version 2.4.1"),
        ("B-KL 3307", "b kl 3307"),
    ],
)
def test_separators_labels_and_case_make_no_difference(reference: str, answer: str) -> None:
    assert identifier_conflict("What is the serial number?", answer, [reference]) == 0.0


@pytest.mark.parametrize("reference", ["3rd", "the 1970s", "5kg", "3pm", "10k", "Paris", "12 May 2020", "3.5"])
def test_amounts_dates_and_words_are_no_identifiers(reference: str) -> None:
    assert Identifier.of(reference, "What is it?") is None


def test_case_of_a_symbol_counts_unless_the_whole_answer_is_in_one_case() -> None:
    question = "What is the symbol of cobalt?"
    assert identifier_conflict(question, "The symbol is CO.", ["Co"]) == 1.0
    assert identifier_conflict(question, "co", ["Co"]) == 1.0
    assert math.isnan(identifier_conflict(question, "the symbol is co", ["Co"]))
    assert math.isnan(identifier_conflict(question, "THE SYMBOL IS CO", ["Co"]))


def test_another_reference_may_be_found() -> None:
    assert identifier_conflict("Which version?", "2.0.1", ["1.0.1", "2.0.1"]) == 0.0
    assert math.isnan(identifier_conflict("Which version?", "2.0.1", ["1.0.1", "the newest"]))


@given(st.text(max_size=60), st.text(max_size=200))
def test_any_text_is_read(reference: str, answer: str) -> None:
    for question in ("Which code?", "Which command?", "Which symbol?", ""):
        found = identifier_conflict(question, answer, [reference])
        assert math.isnan(found) or found in {0.0, 1.0}
