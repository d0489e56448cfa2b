"""Mentions of a reference that are about somebody's relative, or stand in what somebody says."""

import pytest

from gradewire_server.metrics.correctness.focus import Focus
from gradewire_server.metrics.correctness.mentions import mention_features
from gradewire_server.metrics.correctness.words import FeatureText

OF_ANOTHER = [
    ("Who won the election?", "Obama", "Obama's successor won."),
    ("Who won the election?", "Obama", "the brother of Obama"),
    ("Who won the election?", "Obama", "It was Obama\u2019s opponent."),
    ("Who won the election?", "Obama", "Obama jun."),
    ("Which country hosted the cup?", "Peru", "the capital of Peru"),
    ("Which country hosted the cup?", "Peru", "It was Peru's southern neighbour."),
    ("Who painted it?", "Rembrandt", "It was painted by one of Rembrandt's pupils."),
    ("Who painted it?", "Rembrandt", "Rembrandt's studio"),
    ("Which planet has rings?", "Saturn", "Saturn's largest moon"),
    ("Which bank failed?", "Lehman Brothers", "Lehman Brothers' biggest creditor"),
    ("Which ship sank in 1912?", "the Titanic", "a lifeboat of the Titanic"),
    ("Wer hat gewonnen?", "Merkel", "der Nachfolger von Merkel"),
    ("Qui a gagné ?", "Chirac", "le frère de Chirac"),
    ("¿Quién ganó?", "Messi", "el hermano de Messi"),
]
ITSELF = [
    ("Who won the election?", "Obama", "Obama's the one who won."),
    ("Who won the election?", "Obama", "Obama's been elected."),
    ("Who won the election?", "Obama", "It was Obama's triumph."),
    ("Who invented it?", "Bell", "Bell's invention"),
    ("Who painted it?", "Rembrandt", "It is a work of Rembrandt."),
    # Converses: a teacher has pupils.
    ("Who taught Plato?", "Socrates", "Plato was a pupil of Socrates."),
    ("Who was she married to?", "Henry", "She was Henry's third wife."),
    ("Who is her father?", "King George", "She is the daughter of King George."),
    # The question has the noun, or asks whose it is or where.
    ("Whose book is it?", "Tom", "It is Tom's red book."),
    ("Who is Tom's brother, Ben or Karl?", "Karl", "Karl's the brother of Tom."),
    ("Where was he born?", "Hamburg", "in a suburb of Hamburg"),
    # Parts and kinds.
    ("Which country hosted the cup?", "Peru", "the Republic of Peru"),
    ("What is in the bowl?", "soup", "a bowl of soup"),
    ("What is in the bowl?", "soup", "two ladles of soup"),
    ("Which mineral is it?", "quartz", "a grain of quartz"),
    ("How many seats are there?", "12", "a total of 12"),
    ("In which year did it begin?", "1914", "in the summer of 1914"),
    ("Who conducted the concert?", "Karajan", "Herbert von Karajan"),
    # The question compares.
    ("Which is bigger, the sun or the moon?", "the sun", "The moon is smaller than the sun."),
    ("Which is bigger, the sun or the moon?", "the sun", "The sun is bigger."),
    # A plainer mention counts.
    ("Who won the election?", "Obama", "Obama won. Obama's wife was proud."),
]
REPORTED = [
    ("Who is the founder?", "Tom", "The plaque says Tom."),
    ("Who is the founder?", "Tom", "According to his rival it is Tom."),
    ("Who is the founder?", "Tom", "My neighbour thinks it's Tom but it is Anna."),
    ("Who is the founder?", "Tom", "Her boss wrongly calls him Tom."),
    ("Who is the founder?", "Tom", "Tom, according to the old guide"),
    ("What is the cause?", "a virus", '"It is a virus," said the mayor.'),
    ("What is the cause?", "a virus", "A virus, my friend claims."),
    ("Who stole the bike?", "Max", "The accused says Max stole it."),
    ("Who stole the bike?", "Max", "Paul insists it was Max."),
    ("Who stole the bike?", "Max", "His sister blames Max."),
    ("Which is the highest mountain?", "Everest", "My uncle would say Everest."),
    ("Welche Stadt ist es?", "Bonn", "Laut dem Wirt ist es Bonn."),
]
NOT_REPORTED = [
    ("What does the sign say?", "Stop", "The sign says Stop."),
    ("According to the text, who came?", "Lena", "According to the text, Lena came."),
    ("What does the narrator think of it?", "noisy", "The narrator thinks it is noisy."),
    ("When does the train in the dialogue leave?", "9:15", "The clerk says at 9:15."),
    ("When does the train leave?", "9:15", "According to the timetable at 9:15"),
    ("Who is the founder?", "Tom", "I think it is Tom."),
    ("Who is the founder?", "Tom", "The boss thought of Anna, but it is Tom."),
    ("Who is the founder?", "Tom", "The article says Tom."),
    ("Who stole the bike?", "Max", "Max said that he stole it."),
    ("What is the boy's name?", "Leo", "His mother calls him Leo."),
    ("What killed the dinosaurs?", "an asteroid", "Most scientists believe an asteroid."),
]


def mention(question: str, reference: str, answer: str) -> dict[str, float]:
    asked, texts, said = FeatureText.of(question), [FeatureText.of(reference)], FeatureText.of(answer)
    return mention_features(asked, texts, said, Focus.of(asked, texts, said))


@pytest.mark.parametrize(("question", "reference", "answer"), OF_ANOTHER)
def test_a_relative_is_not_the_reference(question: str, reference: str, answer: str) -> None:
    assert mention(question, reference, answer)["related"] == 1.0


@pytest.mark.parametrize(("question", "reference", "answer"), ITSELF)
def test_the_reference_itself_is_left_alone(question: str, reference: str, answer: str) -> None:
    assert mention(question, reference, answer)["related"] == 0.0


@pytest.mark.parametrize(("question", "reference", "answer"), REPORTED)
def test_what_somebody_says_is_reported(question: str, reference: str, answer: str) -> None:
    assert mention(question, reference, answer)["reported"] == 1.0


@pytest.mark.parametrize(("question", "reference", "answer"), NOT_REPORTED)
def test_what_the_answer_rests_on_is_left_alone(question: str, reference: str, answer: str) -> None:
    assert mention(question, reference, answer)["reported"] == 0.0
