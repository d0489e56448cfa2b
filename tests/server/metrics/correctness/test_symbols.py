"""Tests of structures and letters that must be the same sign for sign, and of other names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.correctness.symbols import name_altered, symbol_altered
from gradewire_server.metrics.correctness.words import FeatureText, found_forms

ALTERED = [
    ("(0, 1)", "(0, 1.5)"),
    ("(0, 1)", "The solution is the interval [0, 1]."),
    ("[2,5]", "(2,5)"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"),
    ("[[1,2],[3,4]]", "[[1,3],[2,4]]"),
    (r"\left(3, -1\right)", "(3, 1)"),
    ("x > 3", "x < 3"),
    ("2 + 3i", "2 - 3i"),
    ("Li+", "Li-"),
    ("Vitamin A", "a vitamin"),
    ("A", "She got a B."),
    ("I", "I think C."),
    ("B", "Blood group AB"),
]
KEPT = [
    ("5 V", "5 volts"),
    ("20 °C", "20 degrees Celsius"),
    ("George V", "King George the Fifth"),
    ("(0, 1)", "The interval is (0,1)."),
    ("[[1,2],[3,4]]", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"),
    (r"\left(3, -1\right)", "(3, -1)"),
    ("x > 3", "x>3"),
    ("2 + 3i", "$2+3i$"),
    ("2011-05-03", "2011/05/03"),
    ("Vitamin A", "vitamin a"),
    ("Vitamin A", "It is vitamin A."),
    ("A", "Option A"),
    ("a", "a"),
    ("John F. Kennedy", "John Kennedy"),
    ("A dog", "a dog"),
    ("G major", "g major"),
    ("Paris (France)", "Paris (in France, I think)"),
]


def altered(reference: str, answer: str) -> float:
    return symbol_altered([FeatureText.of(reference)], FeatureText.of(answer))


@pytest.mark.parametrize(("reference", "answer"), ALTERED)
def test_another_structure_or_letter_is_found(reference: str, answer: str) -> None:
    assert altered(reference, answer) == 1.0


@pytest.mark.parametrize(("reference", "answer"), KEPT)
def test_the_same_in_another_notation_is_left_alone(reference: str, answer: str) -> None:
    assert altered(reference, answer) == 0.0


def test_one_reference_that_matches_is_enough() -> None:
    references = [FeatureText.of(text) for text in ("(0, 1)", "[0, 1]")]
    assert symbol_altered(references, FeatureText.of("[0, 1]")) == 0.0


@given(st.text(alphabet="([{<>}]),;&\\ABIa1 .begin{pmatrix}", min_size=1, max_size=3000).filter(str.strip))
def test_any_text_is_read(text: str) -> None:
    assert altered("(0, 1)", text) in {0.0, 1.0}
    assert altered(text, text) == 0.0 or len(FeatureText.of(text, 512).raw) < len(text.strip())


def other_name(answer: str, *references: str, question: str = "Who was it?") -> float:
    texts, said = [FeatureText.of(reference) for reference in references], FeatureText.of(answer)
    return name_altered(FeatureText.of(question), texts, found_forms(texts, said), said)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Jacques Delors", "Jacques Chirac"),
        ("It was Emily Brontë who wrote it.", "Charlotte Brontë"),
        ("Newton Aycliffe", "Newton Abbot"),
        ("Der Komponist war Johann Strauss.", "Richard Strauss"),
        ("The opinion was written by Judge Harlan Whitlock and is long.", "Judge Harlan Whitmore"),
    ],
)
def test_another_name(answer: str, reference: str) -> None:
    assert other_name(answer, reference) == 1


@pytest.mark.parametrize(
    ("answer", "references"),
    [
        ("Jacques Chirac", ["Jacques Chirac"]),
        ("Chirac", ["Jacques Chirac"]),
        ("Jacques René Chirac", ["Jacques Chirac"]),  # a middle name
        ("Jacques Delors", ["Jacques Chirac", "Delors"]),  # another reference
        ("Dave Gahan", ["David Gahan"]),  # a short form
        ("Leo Tolstoi", ["Leo Tolstoy"]),  # a spelling
        ("President Chirac", ["Jacques Chirac"]),  # a title
        ("The Chirac years", ["Jacques Chirac"]),  # a known word
        ("Jacques said so", ["Jacques Chirac"]),  # nothing stands in the place
        ("it is red wine", ["white wine"]),  # no name
        ("R. B. Bennett", ["Richard Bedford Bennett"]),  # initials
        ("", ["Jacques Chirac"]),
    ],
)
def test_the_same_name(answer: str, references: list[str]) -> None:
    assert other_name(answer, *references) == 0


def test_a_name_of_the_question_is_no_other_name() -> None:
    asked = "Who was king after Charles Stuart?"
    assert other_name("James followed Charles Stuart.", "James Francis Stuart", question=asked) == 0


@given(st.text(max_size=80), st.text(min_size=1, max_size=30))
def test_any_text_is_read_for_names(answer: str, reference: str) -> None:
    assert other_name(answer, reference) in {0, 1}


@pytest.mark.parametrize(
    ("answer", "references"),
    [
        ("Axel Merckx", ["Eddy Merckx", "Merckx"]),
        ("The title went to Brent Gretzky again.", ["Wayne Gretzky", "Gretzky"]),
        ("Doris Lessing", ["Gotthold Ephraim Lessing", "Lessing"]),
        ("Scipio Aemilianus", ["Scipio Africanus", "Publius Cornelius Scipio Africanus", "Scipio", "Rome"]),
        ("The German driver Ralf Schumacher did.", ["Michael Schumacher", "Schumacher"]),
        ("Branwell Bront\u00eb", ["Emily Bront\u00eb", "Bront\u00eb"]),
        ("Mr Hendrickson", ["Mr Hendricks", "Hendricks"]),
        ("Hermann B\u00fchler", ["Hermann Buhl", "Buhl"]),
    ],
)
def test_the_short_form_of_a_name_beside_another_name(answer: str, references: list[str]) -> None:
    assert other_name(answer, *references) == 1


@pytest.mark.parametrize(
    ("answer", "references"),
    [
        ("Merckx", ["Eddy Merckx", "Merckx"]),
        ("Edouard Merckx won", ["Eddy Merckx", "Merckx"]),  # another form of the first name
        ("Mohammed Ali", ["Muhammad Ali", "Ali"]),  # a spelling
        ("The composer Beethoven", ["Ludwig van Beethoven", "Beethoven"]),
        ("Der Dichter Lessing", ["Gotthold Ephraim Lessing", "Lessing"]),  # a noun
        ("In Paris Picasso painted it.", ["Pablo Picasso", "Picasso"]),
        ("Wayne Douglas Gretzky", ["Wayne Gretzky", "Gretzky"]),  # a middle name
        ("Brent Gretzky is the brother of Gretzky", ["Wayne Gretzky", "Gretzky"]),  # mentioned alone as well
        ("The African elephant", ["The Elephant", "Elephant"]),  # a common noun
        ("Joanne Rowling", ["J. K. Rowling", "Rowling"]),  # an initial
        ("Chicago's Jordan", ["Michael Jordan", "Jordan"]),
        ("Kaiser Nero", ["Nero Claudius", "Nero"]),  # a title
        ("It was Leonardo. Michelangelo came later.", ["Leonardo da Vinci", "Leonardo"]),
        ("Jacob Tremblay123", ["Jacob Tremblay"]),  # the number of a footnote
        ("Ralf Schumacher", ["Michael Schumacher", "Schumacher", "Ralf Schumacher"]),
    ],
)
def test_the_short_form_of_a_name_alone(answer: str, references: list[str]) -> None:
    assert other_name(answer, *references) == 0
