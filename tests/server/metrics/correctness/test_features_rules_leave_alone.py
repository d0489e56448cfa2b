"""Right answers in words of refusals, denials, hedges and verdicts, of many kinds of text: no rule calls them wrong."""

import pytest
from tests.server.metrics.correctness.test_features import of

from gradewire_server.metrics.correctness.features import FEATURES

RULES = [feature.name for feature in FEATURES if feature.rules_out]
NET = "What was net income in 2019?"
COMPUTED = (
    "The filing does not state net income directly. Net income is revenue ($10.0 million) minus expenses ($5.8 million)"
    " = $4.2 million."
)
READING = [
    ("Why did Anna leave?", "to look for her brother", "She was not able to find her brother so she went to look."),
    ("Why was he poor?", "He was unemployed", "He was unable to find work"),
    ("Where is the treasure?", "lost at sea", "The treasure could not be found."),
    ("What was wrong with the money?", "he needed more", "The money was not enough for the ticket"),
    ("What did the water look like?", "muddy", "The water was not clear"),
    ("How did the children feel?", "hungry", "They were not given any food, so they were hungry"),
    ("How does she feel about moving?", "She is undecided", "She's not sure if she wants to go"),
    ("Why was she late?", "She missed the bus", "She didn't catch the bus"),
    ("Who does Kate trust?", "her grandmother", "She does not trust anyone except her grandmother."),
    ("How long did they wait?", "two weeks", "No more than two weeks"),
    ("Why did he stay?", "to help his father", "He did not go to school to help his father"),
    ("What happens to him?", "He did not survive", "He failed to survive"),
    ("Who is older?", "Anna is older than Bert", "Bert is younger than Anna"),
    ("Which is higher?", "A is above B", "B is below A"),
    ("What may happen?", "They are killed", "They could be killed or put in prison"),
    ("How did she feel?", "sad", "sad, lonely, tired, hungry and cold"),
    ("when do you get it", "before the first year begins", "the end of their first year"),
]
WHAT_IS_NOT = [
    ("What did Joe forget?", "his keys", "He didn't remember his keys"),
    ("What was missing?", "her passport", "She had no passport"),
    ("What did he lose?", "his job", "He no longer has his job"),
    ("What is he afraid of?", "losing his job", "He doesn't want to lose his job"),
    ("What does the man refuse to do?", "sign the contract", "He won't sign the contract"),
    ("What is forbidden?", "smoking", "no smoking"),
    ("What do vegans avoid?", "meat and dairy", "They don't eat meat and dairy."),
    ("Which gas is absent?", "oxygen", "There's no oxygen"),
    ("What was excluded?", "goodwill", "It does not include goodwill"),
    ("Did he win?", "no he lost", "He lost"),
]
TALK = [
    ("You are not coming?", "No, I'm not coming", "Yes, I'm not coming."),
    ("Do you mind if I sit here?", "No, go ahead", "Yes, of course, go ahead"),
    ("Do you have any money?", "No, I'm broke", "I don't have any money."),
    ("Do you know the way?", "I'm not sure, I'm not from here.", "I don't know, sorry."),
    ("What did she offer?", "tea", "Tea? Sure, thanks"),
]
SCIENCE = [
    ("Why is bulb A lit?", "Bulb A is in a closed path with the battery", "There is no gap in the path of bulb A"),
    ("Why a control?", "To compare the results with", "without a control you can't compare the results to anything"),
    ("What is the pH?", "below 7", "not above 7"),
    ("What can you conclude?", "Nothing, she did one trial", "Not enough evidence to conclude, she did one trial"),
    ("Which bird is it?", "the penguin", "The one that does not fly is the penguin"),
    ("How fast is it?", "80", "80 km/h"),
    ("How far is it?", "5 km", "5 km or 3.1 miles"),
    ("What is the force in?", "newton", "newton or N"),
    ("Name a gas of the air.", "nitrogen", "nitrogen; oxygen"),
]
FIGURES = [
    (
        "What was EBITDA?",
        "$7 million",
        "The document does not include EBITDA. 5 and 2 are added, which gives $7 million.",
    ),
    ("What was EBITDA?", "7.00", "I could not find EBITDA itself. Adding D&A to income, the result is 7.00."),
    (NET, "$4.2 million", COMPUTED),
    (
        NET,
        "$4.2 million",
        "It was not explicitly disclosed. To find it, subtract.\n\nNet income in 2019: **$4.2 million**",
    ),
    (NET, "$4.2 million", "I cannot find it stated; adding up the quarters gives 1.1 + 3.1 = $4.2 million"),
    ("Was there profit?", "No, it had a net loss of $5 million", "a net loss of $5 million"),
]
OTHERS = [
    ("How was it?", "not cold enough", "too cold"),
    ("Is the sky blue?", "The sky is blue", "The sky is not only blue."),
    ("Is the sky blue?", "The sky is blue", "The sky is blue, not green."),
    ("Is the sky blue?", "The sky is blue", "The sky is not green but blue."),
    ("Does it boil?", "The water boils", "The water does not boil before it is hot."),
    ("Why isn't it sold?", "The shop is open", "The shop is not open"),
    ("Where does he live?", "No 10", "10"),
    ("Did he win?", "He lost, no", "He lost"),
    ("What may it be, or what might it be?", "yes and no", "yes and no"),
    ("", "The volume decreases", "The volume goes down while pressure increases and heat stays about constant here"),
    ("who founded it", "Anthony Kapoor", "I cannot give you more than this: Anthony Kapoor."),
    ("how many points are needed", "437 or more", "at least 437"),
    ("Which is older, Northwind or Castell?", "Northwind is older.", "Castell is younger than Northwind."),
    ("who wrote hamlet", "William Shakespeare", "I don't have access to live data. William Shakespeare wrote Hamlet."),
    ("when did the war end", "1945", "It did not end before 1945."),
    ("Where does he live?", "10 Downing Street", "No 10 Downing Street"),
    ("What is the dog doing?", "sleeping", "resting/sleeping"),
    ("What is the back called?", "stern", "stern or poop"),
    ("What is it if you hold both?", "dual citizenship", "dual citizenship or dual nationality"),
    ("Which city is it?", "Tehran", "Tehran or Teheran"),
    ("What is she holding?", "racket", "tennis racket or racquet"),
    ("when was he born?", "1950", "Tuesday, January 5, 1950, 10:30, London"),
    ("where is apple", "Cupertino", "Cupertino, Santa Clara County, California, United States, North America"),
]


@pytest.mark.parametrize(
    ("question", "reference", "prediction"), READING + WHAT_IS_NOT + TALK + SCIENCE + FIGURES + OTHERS
)
def test_no_rule_calls_a_right_answer_wrong(question: str, reference: str, prediction: str) -> None:
    found = of(prediction, reference, question=question)
    assert [rule for rule in RULES if found[rule] >= 1] == []


@pytest.mark.parametrize(
    ("references", "prediction"),
    [
        (["no", "yes"], "Yes"),
        (["dell", "unanswerable"], "unanswerable"),
        (["Paris", "Rome"], "It is not Paris. It is Rome."),
        (["cup", "mug"], "a cup or mug"),
        (["open", "closed door"], "closed door"),
    ],
)
def test_another_reference_takes_a_rule_back(references: list[str], prediction: str) -> None:
    found = of(prediction, *references, question="Is it so?")
    assert [rule for rule in RULES if found[rule] >= 1] == []


WRONG = [
    (
        "refused",
        NET,
        "$4.2 million",
        "I cannot find it. The text does not say whether net income 2019 was $4.2 million.",
    ),
    ("refused", NET, "$4.2 million", "It's not clear from the filing what it was; $4.2 million is revenue."),
    ("refused", NET, "$4.2 million", "Net income could not be determined. The data mention $4.2 million."),
    ("refused", NET, "$4.2 million", "I'm unable to calculate it. Revenue: $4.2 million"),
    ("refused", "Who?", "the butler", "I couldn't find that in the story. The butler is named in it."),
    ("denied", "What happens?", "He does not survive", "He survives"),
    ("denied", "Is he?", "The man is not wearing a hat", "The man is wearing a hat"),
    ("denied", "Verdict?", "not guilty", "guilty"),
    (
        "denied",
        "",
        "The argument is valid because of its premises",
        "I think the argument is invalid because of its premises",
    ),
    ("denied", "", "The volume decreases", "the volume increases"),
    ("denied", "Which is it?", "Paris", "I do not think that the largest city there is Paris"),
    ("denied", "Why?", "She missed the bus", "She didn't miss the bus"),
    ("denied", "Is the sky blue?", "The sky is blue", "The sky is not blue."),
    ("denied", "What of it?", "The argument is valid", "The argument isn't valid"),
    ("denied", "Is he?", "The man is wearing a hat", "The man is not wearing a hat."),
    ("alternatives", "Is it so?", "yes", "yes and no"),
    ("alternatives", "Did they go by bus or by train?", "By train", "By bus or by train"),
    ("alternatives", "What color is it?", "red", "red or blue"),
    ("alternatives", "Which year?", "1984", "1984 or 1985"),
    ("alternatives", "Which film?", "Alien", "Alien, Jaws, Heat, Speed, Rocky"),
    ("verdict_conflict", "Is it hot?", "No, it is cold", "Yes, it is"),
]


@pytest.mark.parametrize(("rule", "question", "reference", "prediction"), WRONG)
def test_a_rule_finds_what_is_wrong(rule: str, question: str, reference: str, prediction: str) -> None:
    assert of(prediction, reference, question=question)[rule] >= 1
