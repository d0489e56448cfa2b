"""Answers that say the reference of something else, and right answers with further facts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.correctness.subjects import subject_features
from gradewire_server.metrics.correctness.words import FeatureText


def other_subject(question: str, prediction: str, *references: str) -> float:
    """Return the feature of one answer."""
    texts = [FeatureText.of(each) for each in references]
    return subject_features(FeatureText.of(question), texts, FeatureText.of(prediction))["other_subject"]


OF_SOMETHING_ELSE = [
    ("What does the left-hand boy hold?", "The left-hand boy holds a ball, his friend a kite.", "a kite"),
    ("Who directed Jaws?", "Lucas directed Jaws, whereas Spielberg produced it.", "Spielberg"),
    ("What is the boiling point of ethanol?", "Ethanol boils at 65 °C; methanol boils at 78 °C.", "78 °C"),
    ("How many goals did Salah score?", "Salah scored two and Firmino three.", "3"),
    ("Which country has Nairobi as its capital?", "Nairobi is the capital of Uganda; Kenya lies east of it.", "Kenya"),
    ("What colour is the bus?", "The bus is blue, but the car in front of it is red.", "red"),
    ("Where does Tim work?", "Tim works in York. His sister works in Leeds.", "Leeds"),
    ("When was the bridge built?", "The bridge was built in 1923, the tunnel in 1932.", "1932"),
    ("Wer komponierte den Freischütz?", "Marschner komponierte den Freischütz, Weber dirigierte ihn.", "Weber"),
    ("Which key saves the file?", "F10 saves the file, and F2 renames it.", "F2"),
    ("Which gas do plants take in?", "Plants take in oxygen and give off carbon dioxide.", "carbon dioxide"),
    ("Who won the race?", "It was won by Park; Li came second.", "Li"),
    ("Who painted The Kiss?", "The Kiss was painted by Schiele, a pupil of Klimt.", "Klimt"),
    ("Which player was replaced?", "Moser was replaced after he had tackled Ito.", "Ito"),
    ("What is the capital of Norway?", "Oslo is the capital of Sweden; Norway's is Bergen.", "Oslo"),
    (
        "What temperature does the strudel need? (Sheet: strudel 190 °C, pie 210 °C)",
        "The pie needs 190 °C, the strudel 210 °C.",
        "190 °C",
    ),
    ("When does the museum close on Sundays?", "On Saturdays it closes at 4 pm, on Sundays at 6 pm.", "4 pm"),
    ("What is the fee for the small plan?", "€9 a month for the large plan, €7 for the small plan.", "€9"),
    ("What is in her left hand?", "In the left nothing, in the right a lamp.", "a lamp"),
    ("Welchen Rabatt bekamen Neukunden?", "Stammkunden bekamen 10 %, Neukunden gar nichts.", "10 %"),
    (
        "The list says: Linz 10:12, Wels 10:31. When does the train reach Wels?",
        "It reaches Wels at 10:12 and Linz at 10:31.",
        "10:31",
    ),
]
OF_THE_SUBJECT = [
    ("Who directed Jaws?", "Spielberg directed Jaws, whereas Brown produced it.", "Spielberg"),
    ("What is the boiling point of ethanol?", "Ethanol boils at 78 °C; methanol boils at 65 °C.", "78 °C"),
    ("How many goals did Salah score?", "Salah scored three and Firmino two.", "3"),
    ("Where does Tim work?", "Tim works in Leeds. His sister works in York.", "Leeds"),
    ("Which gas do plants take in?", "Plants take in carbon dioxide and give off oxygen.", "carbon dioxide"),
    ("Who painted The Kiss?", "The Kiss hangs in Vienna and was painted by Klimt, Schiele's mentor.", "Klimt"),
    ("Who painted The Kiss?", "The Kiss hangs in Vienna's Belvedere; the painter is Klimt.", "Klimt"),
    ("What is the capital of Turkey?", "The largest city of Turkey is Istanbul, the capital is Ankara.", "Ankara"),
    ("Who won the race?", "It was won by Li; Park came second.", "Li"),
    ("Who sings the song?", "The song was written by Ann Lee in 1990 and is performed by Jo Day.", "Jo Day"),
    ("Who won?", "Gerald Ruiz, the captain of the Spanish team, won the race in Rome.", "Ruiz"),
    ("When did it open?", "It opened on November 15, 2013 in Rome.", "2013"),
    ("What is the capital of Norway?", "Oslo is the capital of Norway; Sweden's is Stockholm.", "Oslo"),
    ("What temperature does the strudel need?", "The strudel needs 190 °C, the pie 210 °C.", "190 °C"),
    ("When does the museum close on Sundays?", "On Saturdays it closes at 6 pm, on Sundays at 4 pm.", "4 pm"),
    ("Which animals are on the farm?", "The farm keeps cows and goats, and sheep graze outside.", "cows and goats"),
    ("Who plays Jack in Titanic?", "Titanic was directed by James Cameron, it stars Leonardo DiCaprio.", "DiCaprio"),
    ("What is 4 + 6?", "4 + 5 = 9, so 4 + 6 = 10", "10"),
    ("Which king signed it?", "It was Richard, sorry, his brother John.", "John"),
]


@pytest.mark.parametrize(("question", "prediction", "reference"), OF_SOMETHING_ELSE)
def test_the_reference_is_said_of_something_else(question: str, prediction: str, reference: str) -> None:
    assert other_subject(question, prediction, reference) == 1.0


@pytest.mark.parametrize(("question", "prediction", "reference"), OF_THE_SUBJECT)
def test_the_reference_is_said_of_what_is_asked(question: str, prediction: str, reference: str) -> None:
    assert other_subject(question, prediction, reference) == 0.0


def test_without_the_reference_or_a_question_nothing_is_compared() -> None:
    assert other_subject("Who won the race?", "It was won by Park; Cho came second.", "Li") == 0.0
    assert other_subject("", "It was won by Park; Li came second.", "Li") == 0.0


@given(st.text(max_size=60), st.text(max_size=120), st.text(min_size=1, max_size=20).filter(str.strip))
def test_any_text_can_be_read(question: str, prediction: str, reference: str) -> None:
    assert other_subject(question, prediction or "x", reference) in {0.0, 1.0}
