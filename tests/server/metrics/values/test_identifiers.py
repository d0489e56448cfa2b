"""Codes, symbols and numbers that name a thing, compared character by character."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.values.identifiers import Identifier, asked_number, identifier_conflict
from gradewire_server.metrics.values.matching import match_values
from gradewire_server.metrics.values.reading import Outcome


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
    ("question", "reference"),
    [
        ("How many students are in class 5b?", "24.5"),
        ("What percentage of class 5b passed?", "85.5"),
        ("What is the average score of class 5b?", "72.5"),
        ("What was the class average?", "72.5"),
        ("What is the average class size?", "24.5"),
        ("What is the temperature in room 12?", "21.5"),
        ("What room temperature is best?", "20.5"),
        ("What does a room cost per night?", "150"),
        ("What is the price of a room?", "149.90"),
        ("How high is the gate?", "2.35"),
        ("How wide is platform 9?", "4.25"),
        ("How fast does the flight go?", "905"),
        ("How heavy is the phone?", "174"),
        ("What is the balance of the account?", "1250.50"),
        ("What was the account balance?", "1250.50"),
        ("In what year did version 3 come out?", "2008"),
        ("What did the licence cost?", "1500"),
        ("What is the population of postcode 90210?", "19652"),
        ("What score did class 5b get?", "7.5"),
        ("How tall is the gate?", "3.20"),
        ("How deep is the channel?", "12.5"),
        ("How many pages has chapter 3?", "112"),
        ("Wie viele Zimmer hat das Hotel?", "250"),
        ("Combien de classes y a-t-il?", "12.5"),
        ("¿Cuántas habitaciones tiene? código 3", "250"),
        ("What is the number of rooms?", "250"),
        ("What is the length of the flight?", "1350"),
        ("What is the maximum number of seats in the room?", "320"),
        ("What share of flights was late?", "12.5"),
        ("What proportion of the class failed?", "0.25"),
        ("What is the speed of the train on the line?", "250"),
        ("What distance does the flight cover?", "1350"),
        ("Wie hoch ist das Zimmer?", "2.50"),
        ("Wie lang ist der Paragraph?", "250"),
        ("How long is the flight?", "2.5"),
        ("What was the room's area?", "32.5"),
        ("What is the ratio of boys to girls in class 5b?", "1.25"),
        ("What is the weight of the phone?", "174"),
        ("What does the phone weigh?", "174"),
        ("What did the class raise for the school?", "1250"),
        ("How much did the class raise?", "1250.50"),
        ("What is the line resistance?", "4.75"),
        ("What is the phone's weight?", "174.5"),
        ("What voltage does the port supply?", "5.25"),
        ("What seat height is right?", "45.5"),
        ("What is the class discount on tickets?", "12.5"),
        ("What is the licence fee?", "149.5"),
        ("What's the flight time?", "2.75"),
        ("How hot is room 12?", "31.5"),
        ("Wie warm ist es in Zimmer 12?", "21.5"),
        ("What did they pay for the room?", "150"),
        ("Who teaches class 5b?", "112"),
        ("What grade did the class get on average?", "2.35"),
        ("What is the line's gradient?", "12.5"),
        ("Which of the flights took 2.5 hours?", "2.5"),
        ("Quelle est la hauteur de la classe?", "2.75"),
        ("What fraction of the room is used?", "0.25"),
        ("What is the pH value in chapter 3?", "7.25"),
    ],
)
def test_an_amount_beside_a_gate_or_class_is_no_identifier(question: str, reference: str) -> None:
    assert asked_number(reference, question) is None
    assert identifier_conflict(question, reference[:-1], [reference]) != 1.0


@pytest.mark.parametrize(
    ("question", "reference"),
    [
        ("Which line number has the error?", "112"),
        ("What line is the error on?", "112"),
        ("On which page is it?", "114"),
        ("What page?", "114"),
        ("What is the code the guard uses?", "4711"),
        ("What was the version installed?", "1.21"),
        ("What's the pin?", "4711"),
        ("State the case number.", "112"),
        ("Which chapter covers it?", "112"),
        ("Which gate?", "112"),
        ("What is the new gate for flight 12?", "112"),
        ("What is the phone number of the clinic?", "0161 4960021"),
        ("What's Anna's phone number?", "4960021"),
        ("What is the number of the room?", "305"),
        ("Which room is the meeting in?", "305"),
        ("In which room is the meeting?", "3.108"),
        ("What is the room number?", "305"),
        ("Which version introduced it?", "1.21"),
        ("What Python version is needed?", "3.9"),
        ("Wie lautet die Telefonnummer?", "030 901820"),
        ("In welchem Zimmer liegt sie?", "305"),
        ("Quel est le code postal?", "75001"),
        ("¿Cuál es el código postal?", "28013"),
        ("Qual è il codice?", "28013"),
        ("Give me the account number.", "88410073"),
        ("Phone number of the clinic?", "4960021"),
        ("The room number is", "305"),
        ("What is the licence plate?", "M-AB 1234"),
        ("What ISBN does the book have?", "9780306406157"),
        ("What code opens the door when the alarm is on?", "4711"),
        ("From which platform does it leave?", "112"),
        ("Can you tell me the flight number?", "482"),
        ("What is the zip code of Beverly Hills?", "90210"),
        ("Which serial number is on the back?", "220917"),
        ("Welches Gleis?", "101"),
        ("What would the port be?", "8443"),
        ("Which class is the locomotive?", "103"),
        ("Under what case number was it filed?", "2024-817"),
        ("Where do I send the invoice with the account number?", "88410073"),
        ("Which bus line goes there?", "112"),
    ],
)
def test_a_question_for_the_number_itself_gets_an_identifier(question: str, reference: str) -> None:
    assert asked_number(reference, question) is not None


@pytest.mark.parametrize(
    ("question", "reference", "answer", "outcome"),
    [
        ("What is the average score of class 5b?", "72.5", "72.50", Outcome.FOUND),
        ("What was the class average?", "72.5", "It was 72.50 points", Outcome.FOUND),
        ("What percentage of class 5b passed?", "85.5", "85.50 %", Outcome.FOUND),
        ("What is the price of a room?", "149.90", "149.9", Outcome.FOUND),
        ("What was the account balance?", "1250.5", "1,250.50", Outcome.FOUND),
        ("What does a room cost?", "150", "150.0", Outcome.FOUND),
        ("How many students are in class 5b?", "24", "There are 24", Outcome.FOUND),
        ("How many students are in class 5b?", "24", "There are 42", Outcome.CONTRADICTED),
        ("What is the temperature in room 12?", "21.5", "21.50 degrees", Outcome.FOUND),
        ("How high is the gate?", "2.35", "2.350", Outcome.FOUND),
        ("Which room?", "305", "room 350", Outcome.CONTRADICTED),
        ("Which room?", "305", "room 305", Outcome.FOUND),
        ("What is the phone number of the clinic?", "0161 4960021", "0161 4960012", Outcome.CONTRADICTED),
        ("What is the phone number of the clinic?", "0161 4960021", "(0161) 496-0021", Outcome.FOUND),
        ("What Python version is needed?", "3.9", "3.90", Outcome.CONTRADICTED),
    ],
)
def test_amounts_are_compared_by_value_and_names_by_digits(
    question: str, reference: str, answer: str, outcome: Outcome
) -> None:
    assert match_values(question, reference, answer).outcome is outcome


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("Which room is free?", "305", "about 300 rooms"),
        ("Which gate?", "112", "There are 110 gates"),
        ("Which page?", "114", "about 120 pages"),
    ],
)
def test_numbers_that_count_things_are_no_other_identifier(question: str, reference: str, answer: str) -> None:
    assert math.isnan(identifier_conflict(question, answer, [reference]))


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


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("GR/0056-a", "GR/0056-d"),
        ("C 2.14", "Room G 2.14"),
        ("4821 KLM", "La matr\xedcula es 4821 KML."),
        ("help@brivo-mail.example", "help@brivo.mail.example"),
        ("jana.kolb@postbox.example", "It goes to jana.kolp@postbox.example, as you asked."),
        ("https://docs.acme.example/v2/setup", "https://docs.acme.example/v3/setup"),
        ("report_final.docx", "report-final.docx"),
        ("config.yaml", "config.yml"),
        ("www.brivo.example", "www.brevo.example"),
        ("XR-500T", "It is the XR-505T."),
        ("M31", "M13"),
        ("CYP3A4", "CYP3A5"),
        ("F-16", "an F-15"),
        ("A38", "A83"),
        ("LOT 44-B7", "LOT 44-B1"),
        ("v2.14.1", "v2.41.1"),
        ("A4 210", "A4 120"),
        ("B-KL 4821", "B-LK 4821"),
        ("mila_92", "mila_29"),
        ("p53", "p35"),
        ("9f3ac1", "9f3ca1"),
        ("@kite_runner7", "@kite_runner1"),
        ("S355J2", "S355J0"),
        ("BRCA1", "BRCA2"),
    ],
)
def test_one_other_character_makes_another_code_whatever_is_asked(reference: str, answer: str) -> None:
    assert identifier_conflict("What does it say?", answer, [reference]) == 1.0


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("GR/0056-a", "Sample GR 0056 A"),
        ("C 2.14", "c2.14"),
        ("4821 KLM", "4821-KLM"),
        ("4821 KLM", "4821KLM"),
        ("C 2.14", "2.14"),
        ("help@brivo.example", "Write to Help@Brivo.example."),
        ("help@brivo.example", "mailto:help@brivo.example"),
        ("www.brivo.example", "https://www.brivo.example/"),
        ("brivo.example", "www.brivo.example"),
        ("5 km", "6 km"),
        ("12 years", "15 years"),
        ("1990s", "the 1980s"),
        ("May 5", "May 6"),
        ("16th", "15th"),
        ("10k", "about 12k"),
        ("Henry VIII", "Henry VII"),
        ("iPhone 12", "The iPhone 12 replaced the iPhone 11."),
        ("F-16", "The F-16, not the F-15"),
        ("COVID-19", "Covid19"),
        ("v2.14.1", "2.14.1"),
        ("XR-500T", "XR500T"),
        ("3h 20m", "3h 25m"),
        ("7pm", "8pm"),
        ("2x+3", "2x + 3"),
        ("5b", "the 7b"),
        ("U2", "UB"),
        ("$4.5M", "$4.6M"),
        ("3D printing", "2D printing"),
        ("20 KM", "21 KM"),
        ("e.g. apples", "i.e. apples"),
        ("St. Paul, MN 55101", "St. Paul"),
        ("4 a.m.", "2 a.m."),
        ("help@brivo-mail.example", "not help@brivo.mail.example but help@brivo-mail.example"),
    ],
)
def test_amounts_words_and_other_spellings_are_no_other_code(reference: str, answer: str) -> None:
    assert identifier_conflict("What does it say?", answer, [reference]) != 1.0


def test_a_letter_before_the_right_digits_is_another_code() -> None:
    assert identifier_conflict("Which room is it?", "Room G 2.14", ["C 2.14", "Room C 2.14"]) == 1.0


def test_a_telephone_number_with_the_code_of_a_country() -> None:
    question = "What is the phone number?"
    assert identifier_conflict(question, "+44 20 7946 0182", ["020 7946 0182"]) == 0.0
    assert identifier_conflict(question, "+44 20 7946 0128", ["020 7946 0182"]) == 1.0
    assert identifier_conflict(question, "0044 20 7946 0182", ["020 7946 0182"]) == 0.0
    assert identifier_conflict(question, "0044 20 7946 0128", ["020 7946 0182"]) == 1.0
    assert identifier_conflict(question, "0049 30 1234567", ["030 1234567"]) == 0.0
    assert identifier_conflict(question, "00351 21 123456", ["021 123456"]) == 0.0


def test_a_code_in_capitals_whatever_the_question() -> None:
    assert identifier_conflict("Which disease is it?", "COVID-18", ["COVID-19"]) == 1.0
    assert identifier_conflict("Which disease is it?", "Covid 18", ["COVID-19"]) == 1.0
    assert identifier_conflict("Which disease is it?", "Covid 19", ["COVID-19"]) != 1.0
    assert math.isnan(identifier_conflict("Which aeroplane is it?", "Boeing 737", ["Boeing 747"]))


@pytest.mark.parametrize(("reference", "answer"), [("a2a\u00df", "It is A2aa."), ("92a\u00df", "It is 92Aa.")])
def test_a_code_with_a_letter_that_is_two_letters_in_another_case_is_compared(reference: str, answer: str) -> None:
    assert identifier_conflict("", answer, [reference]) == 1.0
