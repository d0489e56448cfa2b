"""Right answers before wrong ones of the kinds of text that the fits that ship were not made for, SMILE's terms alike.

Reading comprehension, dialogue, students' answers to science questions, and figures of companies. Written for these
tests: question, reference, right answer, wrong answer.
"""

import pytest
from tests.server.metrics.correctness.test_features import inputs
from tests.server.metrics.correctness.test_metric_shipped_fits import fit as fit  # noqa: PLC0414 - the fixture

from gradewire_server.metrics.correctness.features import features
from gradewire_server.metrics.correctness.fit import CorrectnessFit

CASES = [
    (
        "Why did the boy stay at home?",
        "He had a broken leg",
        "because his leg was broken",
        "because his arm was broken",
    ),
    (
        "What does the room look like?",
        "It looks like a kitchen",
        "It looks like a kitchen",
        "It looks like a living room",
    ),
    (
        "Who gave her the necklace?",
        "her grandmother",
        "Her grandmother gave it to her.",
        "Her grandfather gave it to her.",
    ),
    pytest.param(
        *(
            "Where was the treasure hidden?",
            "under the old oak tree",
            "beneath the old oak",
            "under the old stone bridge",
        ),
        marks=pytest.mark.xfail(
            strict=True,
            reason="without vectors, version 3 sees neither that beneath is under nor that the head changed",
        ),
    ),
    ("What colour was the car?", "dark blue", "It was dark blue.", "It was dark red."),
    (
        "What did Tom buy at the market?",
        "apples, bread and cheese",
        "cheese, apples and bread",
        "apples, bread and milk",
    ),
    (
        "Did the dog find its way home?",
        "Yes, it followed the river",
        "Yes, by following the river.",
        "No, it followed the river the wrong way.",
    ),
    ("Was the old man angry?", "No, he was not angry at all", "No, he wasn't angry.", "Yes, he was angry."),
    (
        "Who wrote the letter?",
        "Captain Morris",
        "It was written by Captain Morris.",
        "It was written by Captain Harris.",
    ),
    ("What kind of farm did they own?", "a dairy farm", "a dairy farm", "a dairy form"),
    ("How many children does she have?", "three", "She has 3 children.", "She has 4 children."),
    ("What was the weather like?", "cold and wet", "It was wet and cold.", "It was hot and dry."),
    ("", "the library", "in the library", "in the gym"),
    ("", "a large brown bear", "a big brown bear", "a large brown dog"),
    (
        "Is the restaurant open on Sundays?",
        "Yes, from noon to ten",
        "Yes, it opens at noon on Sundays.",
        "No, it is closed on Sundays.",
    ),
    ("Would she like some tea?", "No, she prefers coffee", "No, she'd rather have coffee.", "Yes, she would like tea."),
    (
        "Which movie do they decide on?",
        "the horror movie",
        "They pick the horror movie.",
        "the comedy movie or the horror movie",
    ),
    ("Can he come to the party?", "No, he has to work", "No, because he has to work.", "Yes, because he has no work."),
    ("What does the man want to return?", "a pair of shoes", "shoes", "a pair of trousers"),
    ("Who is calling?", "Mr Neemuchwala", "Mr Neemuchwalla is calling", "Mr Patterson is calling"),
    (
        "Why did the balloon expand?",
        "The air inside was heated",
        "because the air in it got heated",
        "because the air in it was cooled",
    ),
    ("What happens to the volume?", "The volume increases", "the volume increases", "the volume decreases"),
    (
        "Does salt conduct electricity when dry?",
        "No, it does not conduct",
        "No, it doesn't conduct",
        "Yes, it conducts",
    ),
    (
        "Which terminal is the bulb connected to?",
        "the positive terminal",
        "the positive terminal of the battery",
        "the negative terminal of the battery",
    ),
    (
        "Why is the bulb off?",
        "There is a gap in the circuit",
        "there is a gap in the circuit",
        "there is no gap in the circuit",
    ),
    ("Which solution is acidic?", "solution B", "Solution B is.", "Solution A is."),
    ("Is this reaction reversible?", "It is irreversible", "It is irreversible", "It is reversible"),
    ("Is the molecule polar?", "It is nonpolar", "the molecule is nonpolar", "the molecule is polar"),
    ("Do the bacteria need oxygen?", "They do not need oxygen", "They don't need oxygen", "They need oxygen"),
    ("Name the gas given off.", "carbon dioxide", "carbon dioxide", "carbon monoxide"),
    ("What unit is force measured in?", "newtons", "Newton", "joules"),
    ("Which organ filters blood?", "the kidneys", "kidney", "the liver"),
    (
        "What did the sound travel through?",
        "Solids, liquids and gases",
        "gases, liquids, solids",
        "solids, liquids and vacuums",
    ),
    (
        "What was net income in 2019?",
        "$4.2 million",
        "Net income was $4.2 million in 2019.",
        "I cannot determine net income from the text; revenue was $4.2 million.",
    ),
    ("What was net income in 2019?", "$4.2 million", "4.2 million dollars", "4.7 million dollars"),
    ("By how much did revenue grow?", "12.5%", "It grew by 12.5 percent", "It grew by 21.5 percent"),
    ("What is the debt ratio?", "0.35", "about 0.35", "about 0.53"),
    ("How many shares were issued?", "1,200,000", "1200000 shares", "1,200 shares"),
    ("When does the lease end?", "June 30, 2024", "It ends on 30 June 2024.", "It ends on 30 July 2024."),
    ("Who audits the company?", "Ernst & Young", "Ernst and Young", "Ernst & Young or Deloitte"),
    ("Did operating costs rise?", "Yes, they rose by 3%", "Yes, by 3 %.", "No, they fell by 3 %."),
    (
        "What was the quarterly dividend?",
        "$0.50 per share",
        "0.50 dollars a share",
        "The filing does not state whether it was $0.50 per share.",
    ),
    ("Which organisation declared the pandemic?", "World Health Organization", "the WHO", "the WTO"),
    (
        "Which organisation declared the pandemic?",
        "WHO",
        "The World Health Organization did.",
        "The World Trade Organization did.",
    ),
    ("Which country won?", "U.S.A.", "the USA", "the USSR"),
    ("What dessert do they sell?", "ice cream", "icecream", "apple pie"),
    ("Who painted it?", "Edvard Gr\u00f8nlund", "Edvard Gronlund", "Edvard Lindgren"),
    ("Which river flows through Paris?", "Seine", "the Seine", "Seine or Rhine"),
    ("Which river flows through Paris?", "Seine", "the Seine", "It could be the Loire, the Seine or the Rhone."),
    ("Which river flows through Paris?", "Seine", "It is the Seine, not the Rhine.", "It is not the Seine."),
    ("Which river flows through Paris?", "Seine", "the river Seine", "Rhine, Rhone, Loire, Seine, Garonne, Elbe"),
    ("Who composed the opera?", "Johann Strauss", "Johann Straus", "Johann Sebastian Bach"),
    (
        "What are the toll roads called?",
        "autopistas",
        "They are called autopistas or cuotas.",
        "They are called carreteras.",
    ),
]


@pytest.mark.parametrize(("question", "reference", "right", "wrong"), CASES)
def test_the_right_answer_comes_first(
    fit: CorrectnessFit, question: str, reference: str, right: str, wrong: str
) -> None:
    first, second = (fit(features(inputs(said, reference, question=question))) for said in (right, wrong))
    assert first > second
