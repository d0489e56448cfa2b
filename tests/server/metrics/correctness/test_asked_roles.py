"""Which role an answer gives a reference, and which one the question asks for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import example_count

from gradewire_server.metrics.correctness.asked_roles import role_reversed
from gradewire_server.metrics.correctness.sentences import asking
from gradewire_server.metrics.correctness.words import FeatureText

# Question, reference, answers with the role that is asked for, answers with the other one.
VERBS = [
    (
        "Who taught Anna?",
        "Tom",
        ["Tom taught Anna.", "Anna was taught by Tom.", "Tom taught her.", "It was Tom who taught Anna."],
        ["Anna taught Tom.", "Tom was taught by Anna.", "She taught Tom.", "It was Anna who taught Tom."],
    ),
    (
        "Who was beaten by Federer?",
        "Nadal",
        ["Federer beat Nadal.", "Nadal was beaten by Federer in four sets."],
        ["Nadal beat Federer.", "Federer was beaten by Nadal."],
    ),
    (
        "Which team beat Ajax?",
        "Porto",
        ["Porto beat Ajax 2-1.", "Ajax lost to Porto.", "Ajax were beaten by Porto."],
        ["Ajax beat Porto.", "Porto was beaten by Ajax."],
    ),
    (
        "Whom did the dog bite?",
        "the man",
        ["The dog bit the man.", "The man was bitten by the dog.", "the man whom the dog bit"],
        ["The man bit the dog.", "The dog was bitten by the man."],
    ),
    ("By whom was Caesar betrayed?", "Brutus", ["Brutus betrayed Caesar."], ["Caesar betrayed Brutus."]),
    ("Who was Luther banned by?", "Leo X", ["Luther was banned by Leo X."], ["Leo X was banned by Luther."]),
    (
        "Who is chasing the mouse in the picture?",
        "the cat",
        ["The cat is chasing the mouse.", "The mouse is being chased by the cat."],
        ["The mouse is chasing the cat.", "The cat is being chased by the mouse."],
    ),
    ("Who is the nurse helping?", "an old man", ["The nurse helps an old man."], ["An old man is helping the nurse."]),
    ("Whom has Karl invited?", "Petra", ["Karl has invited Petra."], ["Petra has invited Karl."]),
    (
        "Who gave the book to Anna?",
        "Tom",
        ["Tom gave Anna the book.", "The book was given to Anna by Tom."],
        ["Anna gave the book to Tom."],
    ),
    ("Who was the man that shot Lennon?", "Chapman", ["Chapman shot Lennon."], ["Lennon shot Chapman."]),
    ("Who was the woman who Picasso painted?", "Dora Maar", ["Picasso painted Dora Maar."], ["Maar painted Picasso."]),
    ("Who was fired?", "Tom", ["Anna fired Tom.", "Tom was fired on Monday."], ["Tom fired Anna."]),
    ("Who hired you?", "Bob", ["I was hired by Bob."], ["I hired Bob."]),
    ("Which class inherits from Shape?", "Circle", ["Circle inherits from Shape."], ["Shape inherits from Circle."]),
    (
        "What causes malaria?",
        "a parasite",
        ["Malaria is caused by a parasite."],
        ["Malaria causes a parasite."],
    ),
]
NOUNS = [
    ("Who was Plato's teacher?", "Socrates", ["The teacher of Plato was Socrates."], ["Plato was Socrates' teacher."]),
    ("What is the capital of Peru?", "Lima", ["Lima is Peru's capital."], ["Peru is the capital of Lima."]),
    ("Which country is Lima the capital of?", "Peru", ["It is the capital of Peru."], []),
    ("Who is Mia's brother?", "Leo", ["Mia is Leo's sister, and Leo is Mia's brother."], []),
]
ADJECTIVES = [
    ("Who is afraid of the dog?", "Mia", ["Mia is afraid of the dog."], ["The dog is afraid of Mia."]),
    ("Who is Tom jealous of?", "Anna", ["Tom is jealous of Anna."], ["Anna is jealous of Tom."]),
    ("Which country lies north of Peru?", "Ecuador", ["Peru lies south of Ecuador."], ["Peru lies north of Ecuador."]),
    ("Which line is parallel to g?", "h7", ["g is parallel to h7."], []),
    ("Who was the first president of Ghana?", "Nkrumah", ["The first president of Ghana was Nkrumah."], []),
]
COMPARISONS = [
    (
        "Which is larger, a koala or a wombat?",
        "a wombat",
        ["A wombat is larger than a koala.", "A koala is smaller than a wombat.", "The wombat is larger."],
        ["A koala is larger than a wombat.", "A wombat is smaller than a koala."],
    ),
    (
        "Which metal is more reactive, zinc or copper?",
        "zinc",
        ["Copper is less reactive than zinc."],
        ["Zinc is less reactive than copper.", "Copper is more reactive than zinc."],
    ),
    ("Which river is longer than the Rhine?", "the Danube", [], ["The Rhine is longer than the Danube."]),
    (
        "Which planet is Mars larger than?",
        "Mercury",
        ["Mars is larger than Mercury."],
        ["Mercury is larger than Mars."],
    ),
]
CASES = [*VERBS, *NOUNS, *ADJECTIVES, *COMPARISONS]
LEFT_ALONE = [
    # It holds both ways.
    ("Who married Marie Sklodowska?", "Pierre Curie", "Marie Sklodowska married Pierre Curie."),
    ("Which country borders Portugal?", "Spain", "Portugal borders Spain."),
    ("Who sang with Cher?", "Sonny", "Cher sang with Sonny."),
    ("Who lives next to Paul?", "Nina", "Paul lives next to Nina."),
    # The verb has no subject and object of this kind.
    ("Which film did Chaplin write the music for?", "Limelight", "The music for Limelight was written by Chaplin."),
    ("Who starred in On Golden Pond?", "Henry Fonda", "The movie On Golden Pond starred Henry Fonda."),
    ("What sank the ship?", "an iceberg", "The ship sank after it hit an iceberg."),
    ("What covers the table?", "a cloth", "The table is covered with a cloth."),
    ("What do you call a baby goat?", "a kid", "A kid is what you call a baby goat."),
    # Another sentence says it as it is, or a negation does.
    ("Who taught Anna?", "Tom", "Anna never taught Tom."),
    ("Who loves Olivia?", "Orsino", "Olivia loves Cesario; Orsino loves Olivia."),
    # The noun is not the verb.
    ("Which state did Texas join?", "the United States", "Texas is a state in the United States."),
    ("Which piece of cutlery lies to the left?", "the fork", "To the left lies the fork."),
    # No question, or an answer that is no sentence.
    ("", "Tom", "Anna taught Tom."),
    ("Who taught Anna?", "Tom", "Tom"),
    ("Who taught Anna?", "Tom", "Anna taught Tom. " * 30),
]


def role(question: str, answer: str, *references: str) -> float:
    return role_reversed(
        FeatureText.of(question), [FeatureText.of(each) for each in references], FeatureText.of(answer)
    )


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [(question, reference, answer) for question, reference, _, wrong in CASES for answer in wrong],
)
def test_the_other_role_is_found(question: str, reference: str, answer: str) -> None:
    assert role(question, answer, reference) == 1.0


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [*((question, reference, answer) for question, reference, right, _ in CASES for answer in right), *LEFT_ALONE],
)
def test_the_role_that_is_asked_for_is_left_alone(question: str, reference: str, answer: str) -> None:
    assert role(question, answer, reference) == 0.0


def test_one_reference_in_the_right_role_is_enough() -> None:
    assert role("Who taught Anna?", "Eva taught Anna, and Anna taught Tom.", "Tom", "Eva") == 0.0
    assert role("Who taught Anna?", "Anna taught Eva and Tom.", "Tom", "Eva") == 1.0


PIECES = st.sampled_from(
    ["who", "that", "was", "by", "of", "than", "larger", "'s", "taught", "Tom", "Anna", ",", ".", "?"]
)


@given(st.lists(PIECES, max_size=14).map(" ".join), st.lists(PIECES, max_size=20).map(" ".join))
@settings(max_examples=example_count(200))
def test_any_words_are_read(question: str, answer: str) -> None:
    assert role(question, answer, "Tom") in {0.0, 1.0}


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Tom is 3 years older than Mia. Who is younger?", "Who is younger?"),
        ("How many votes did Ann get? (Result: Ann 412, Bo 388.)", "How many votes did Ann get?"),
        ('What does the note say about the dough: "Do not freeze"?', "What does the note say about the dough ?"),
        ("Who won? Answer in one word.", "Who won?"),
        ("Who did Dr. Smith teach at St. Mary's?", "Who did Dr. Smith teach at St. Mary's?"),
        ("Ada met Bo. Who was late?", "Who was late?"),
        ("The ship sank in 1912. who built it", "who built it"),
        ("The Moon and the Earth: which one orbits the other?", "The Moon and the Earth: which one orbits the other?"),
        ("Explain your reasoning. Be brief.", "Explain your reasoning. Be brief."),
        ("(Why?)", "(Why?)"),
        ("", ""),
    ],
)
def test_the_sentence_that_asks(question: str, sentence: str) -> None:
    assert asking(FeatureText.of(question)).raw == sentence


@given(st.text(max_size=80))
def test_any_question_has_a_sentence_that_asks(question: str) -> None:
    assert asking(FeatureText.of(question)).raw or not question.strip()


def test_a_comparison_behind_a_statement() -> None:
    question, tom, mia = (
        "Tom is 3 years older than Mia. Who is younger?",
        "Tom is younger than Mia.",
        "Mia is the younger.",
    )
    references = [FeatureText.of("Mia")]
    assert role_reversed(FeatureText.of(question), references, FeatureText.of(tom)) == 1.0
    assert role_reversed(FeatureText.of(question), references, FeatureText.of(mia)) == 0.0


def test_a_pronoun_between_two_names() -> None:
    question, references = FeatureText.of("Who transferred the caller to the team?"), [FeatureText.of("Dana")]
    assert role_reversed(question, references, FeatureText.of("Ravi transferred him to Dana.")) == 1.0
    assert role_reversed(question, references, FeatureText.of("Dana transferred him to Ravi.")) == 0.0
