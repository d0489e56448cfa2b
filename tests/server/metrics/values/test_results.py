"""The result of a calculation, and numbers that are only its steps."""

import math

import pytest

from gradewire_server.metrics.values.matching import ValueMatcher
from gradewire_server.metrics.values.results import result_conflict, result_of


def conflict(question: str, answer: str, *references: str) -> float:
    return result_conflict(ValueMatcher(question, answer), question, answer, references)


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "15 - 6 = 9, then 9 + 6 = 15 marbles are left."),
        ("What is the area of a 4 by 7 rectangle?", "28", "4 \u00b7 7 = 28, halved: 14. The area is 14."),
        ("What is the cost of 5 pens at 2 euros?", "10 euros", "5 \u00d7 2 = 10, plus 2 euros postage, so 12 euros."),
        (
            "What is the cost of 5 pens at 2 euros?",
            "10 euros",
            "5 \u00d7 2 = 10 euros, minus a discount of 1 = 9 euros",
        ),
        ("Calculate the current for 20 V and 5 ohms.", "4 A", "I = U/R = 20/5 = 4, times 5 makes 20 A"),
        ("What is x in x + 7 = 19?", "12", "x + 12 = 19, so x = 7"),
        ("How many students are in the bus?", "34", "There were 40 seats and 34 students, 40 - 34 = 6, therefore 6."),
        ("What is 30% of 50?", "15", "30% of 50 is 15; 50 - 15 = 35. The answer is 35."),
        ("Wie viele \u00c4pfel bleiben?", "8", "12 - 4 = 8, dann 8 - 4 = 4, also bleiben 4 \u00fcbrig."),
        ("How many sheep are there in total?", "24", "18 + 6 = 24 -> 24 + 6 = 30"),
        ("What is the mean?", "6", "(4 + 8)/2 = 6; 6/2 = 3; result: 3"),
        ("How long is the side?", "5 cm", "25 = 5 \u00b7 5, doubled that gives 10 cm"),
        (
            "A farmer has 45 hens and sells 18. How many remain?",
            "27",
            "45 \u2212 18 = 27. He then sells 18 more: 27 \u2212 18 = 9. So nine hens remain.",
        ),
        ("A farmer has 45 hens and sells 18. How many remain?", "27", "18 + 27 = 45, hence 45 hens."),
        ("A farmer has 45 hens and sells 18. How many remain?", "27", "45 take away 27 is 18"),
        ("A farmer has 45 hens and sells 18. How many remain?", "27", "27 + 18 = 45"),
        (
            "What is the density of 90 g in 30 cm\u00b3?",
            "3 g/cm\u00b3",
            "90 g / 30 cm\u00b3 = 3 g/cm\u00b3, times 2 for both halves: 6 g/cm\u00b3",
        ),
        (
            "What is the density of 90 g in 30 cm\u00b3?",
            "3 g/cm\u00b3",
            "\u03c1 = m/V = 30/90 = 0.33 g/cm\u00b3 (not 3)",
        ),
        ("Compute 7 \u00d7 8 \u2212 6.", "50", "7 \u00d7 8 = 56; 56 \u2212 6 = 50; 50 \u2212 6 = 44"),
        ("Compute 7 \u00d7 8 \u2212 6.", "50", "First 8 \u2212 6 = 2, then 7 \u00d7 2 = 14"),
        (
            "What does the taxi cost for 12 km at 2 euros per km plus 4 euros?",
            "28 euros",
            "12 \u00b7 2 = 24, 24 + 4 = 28, and back again makes 56 euros",
        ),
        (
            "What does the taxi cost for 12 km at 2 euros per km plus 4 euros?",
            "28 euros",
            "12 \u00b7 2 = 24 and 4 on top is 28; there and back that comes to 56 euros.",
        ),
        ("How many days is 5 weeks?", "35", "5 \u00d7 7 = 35, but without Sundays it's 30 days"),
        ("What is the interest on 400 euros at 5%?", "20 euros", "5% of 400 is 20, 400 + 20 = 420. You get 420 euros."),
        ("What is the interest on 400 euros at 5%?", "20 euros", "400 * 0.05 = 20; result 420 euros"),
        (
            "How far does light travel in 2 s?",
            "600,000 km",
            "300,000 km/s \u00d7 2 s = 600,000 km, halved as it must return, i.e. 300,000 km",
        ),
        ("Solve 5x = 40", "x = 8", "5x = 40 \u2192 x = 40 \u2212 5 = 35"),
        ("Solve 5x = 40", "8", "x = 40/5 = 8, so 5x = 5\u00b78 and x = 40"),
        ("How many grams in 2.5 kg?", "2500", "2.5 \u00d7 1000 = 2500, divided by 10 = 250 g"),
        ("What's the total?", "66", "22 + 44 = 66, minus the 6 free ones, 60"),
        ("Combien reste-t-il ?", "12", "20 - 8 = 12, donc il reste 8"),
        ("\u00bfCu\u00e1ntos quedan?", "12", "20 - 12 = 8, quedan 8"),
        ("What is log2(64)?", "6", "2^6 = 64, so the answer is 64"),
        ("How fast is 72 km/h in m/s?", "20", "72/3.6 = 20, times 3.6 again = 72 m/s"),
        ("What is the gcd of 24 and 36?", "12", "24 = 2\u00b712 and 36 = 3\u00b712, so gcd = 2\u00b73 = 6"),
        ("What is the square root of 144?", "12", "12 \u00d7 12 = 144, so it's 144"),
        ("How many moles are in 36 g of water?", "2", "36/18 = 2, two hydrogens each, so 4 mol"),
        (
            "A car uses 6 litres per 100 km. How much for 350 km?",
            "21 litres",
            "6 \u00b7 3.5 = 21; rounded up to full cans of 5: 25 litres",
        ),
        ("How many rooms?", "25", "5 \u00b7 5 = 25, 25 \u2212 5 = 20"),
        ("How much is left of 50 euros?", "18 euros", "He spent 18 of his 50 euros, so 32 euros are left."),
    ],
)
def test_another_result(question: str, reference: str, answer: str) -> None:
    assert conflict(question, answer, reference) == 1.0


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        # "is left" is no part of "this left".
        ("How many eggs does he have?", "7", "3 + 4 = 7 eggs. He has 2 in this left basket."),
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "15 - 6 = 9"),
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "9 marbles, because 15 - 6 = 9"),
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "9. Check: 9 + 6 = 15"),
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "15 - 6 = 9, since 9 + 6 = 15"),
        ("Nina has 15 marbles and loses 6. How many are left?", "9", "The answer is 9: 15 - 5 = 10 and 10 - 1 = 9."),
        ("How long is the route?", "14 km", "8 + 6 = 14 km (see page 3)"),
        (
            "What is the cost of 5 pens at 2 euros?",
            "10 euros",
            "2 + 2 + 2 + 2 + 2 = 10, so she pays 10 euros for the 5 pens.",
        ),
        ("What is the cost of 5 pens at 2 euros?", "10 euros", "So 5 pens cost 10 euros"),
        ("What is x in x + 7 = 19?", "x = 12", "x = 19 - 7 = 12"),
        ("What is x in x + 7 = 19?", "12", "x = 12, as 12 + 7 = 19"),
        ("What is 1/4 of 2?", "0.5", "2/4 = 1/2"),
        ("What is 1/4 of 2?", "0.5", "2/4 = 1/2 = 50%"),
        ("What is the speed?", "20 m/s", "v = 10 \u00b7 2 = 20 m/s = 72 km/h"),
        ("How many sheep are there in total?", "24", "18 white ones and 6 black ones, 24 in all"),
        (
            "How many sheep are there in total?",
            "24",
            "There are 24 in all: 18 + 6 = 24 animals, 18 of which are white.",
        ),
        ("What is the mean?", "6", "Sum: 12. Number: 2. Mean = 12/2 = 6"),
        ("When did it open?", "1990", "It opened in 1990, so it was 10 years before the 2000 games."),
        ("A farmer has 45 hens and sells 18. How many remain?", "27", "45 take away 18 is 27"),
        ("A farmer has 45 hens and sells 18. How many remain?", "27", "45 \u2212 18 = 27, so 27 of the 45 hens remain"),
        ("A farmer has 45 hens and sells 18. How many remain?", "27", "27 (45 \u2212 18 = 27)"),
        ("A farmer has 45 hens and sells 18. How many remain?", "27", "27 = 45 \u2212 18"),
        ("A farmer has 45 hens and sells 18. How many remain?", "27", "45 = 27 + 18, so it's 27."),
        (
            "A farmer has 45 hens and sells 18. How many remain?",
            "27",
            "You need 45 \u2212 18. 45 \u2212 10 = 35 and 35 \u2212 8 = 27.",
        ),
        (
            "A farmer has 45 hens and sells 18. How many remain?",
            "27",
            "45 - 18 = 27 hens; that is 60% of the original 45.",
        ),
        ("A farmer has 45 hens and sells 18. How many remain?", "27", "He has 27 left, since 18 + 27 = 45."),
        ("What is the density of 90 g in 30 cm\u00b3?", "3 g/cm\u00b3", "\u03c1 = m/V = 90/30 = 3"),
        (
            "What is the density of 90 g in 30 cm\u00b3?",
            "3 g/cm\u00b3",
            "90 g / 30 cm\u00b3 = 3 g/cm\u00b3 = 3000 kg/m\u00b3",
        ),
        (
            "Compute 7 \u00d7 8 \u2212 6.",
            "50",
            "7 \u00d7 8 = 56 and 56 \u2212 6 = 50. (Not 14, as one gets with 8 \u2212 6 = 2 first.)",
        ),
        ("How many days is 5 weeks?", "35", "5 weeks \u00d7 7 days = 35 days, i.e. 35."),
        (
            "How many passengers are on the bus after the stop?",
            "19",
            "24 \u2212 8 = 16; 16 + 3 = 19 passengers (plus 1 driver).",
        ),
        ("What is the probability?", "1/6", "1 of 6 sides, so 1/6, which is about 17%"),
        ("How high is the tower in feet?", "330 m", "The tower is 330 m high, which makes it the tallest of 3."),
        ("How many atoms are in C2H6?", "8", "2 C + 6 H = 8 atoms in total"),
        ("What year was it 50 years after 1950?", "2000", "1950 + 50 = 2000"),
        ("How many wheels?", "12", "3 cars with 4 wheels each, that makes 12"),
        ("How old is Max if he is 3 years older than Ida (9)?", "12", "9 + 3 = 12, so Max is 12 and Ida 9."),
        (
            "Weng earns $12 an hour. She did 50 minutes. How much did she earn?",
            "10",
            "Weng earns 12/60 = $0.2 per minute. Working 50 minutes, she earned 0.2 x 50 = $10.",
        ),
        ("What is the derivative value?", "6", "f'(x) = 2x, so f'(3) = 2\u00b73 = 6"),
        (
            "Find x: 3x - 4 = 11",
            "5",
            "Add 4 to both sides: 3x = 15. Divide by 3: x = 5. Checking: 3(5) - 4 = 11. \u2713",
        ),
        ("Find x: 3x - 4 = 11", "5", "3x = 11 + 4 = 15\nx = 15/3 = 5\nThe solution is x = 5."),
        ("What is the pH of 0.01 M HCl?", "2", "pH = -log(0.01) = 2"),
        ("How many moles are in 36 g of water?", "2", "n = m/M = 36 g / 18 g/mol = 2 mol"),
        ("How fast is 72 km/h in m/s?", "20", "72/3.6 = 20 m/s"),
        (
            "A car uses 6 litres per 100 km. How much for 350 km?",
            "21 litres",
            "6 \u00b7 3.5 = 21 litres (at 1.80 euros a litre this would be 37.80 euros)",
        ),
        ("What is the gcd of 24 and 36?", "12", "24 = 2^3\u00b73 and 36 = 2^2\u00b73^2, so gcd = 2^2\u00b73 = 12"),
        ("What's 15% tip on $60?", "$9", "10% is $6, 5% is $3, so 15% is $9, total bill $69"),
        ("How many combinations?", "10", "5 choose 2 = 5!/(2!\u00b73!) = 120/12 = 10"),
        ("Berechne 15 % von 80.", "12", "10 % sind 8, 5 % sind 4, zusammen also 12."),
        ("What is the median of 3, 9, 4?", "4", "Sort them: 3, 4, 9 \u2192 the median is 4"),
        ("How old is she?", "34", "2024 \u2212 1990 = 34 years, so she is 34"),
        ("What is log2(64)?", "6", "2^6 = 64, so log2(64) = 6"),
        ("What is log2(64)?", "6", "6, because 2 to the 6th is 64"),
        ("What is the square root of 144?", "12", "12 \u00d7 12 = 144, so it's 12"),
        ("What is the square root of 144?", "12", "\u221a144 = 12"),
        ("How many goals per game are 45 goals in 15 games?", "3", "3, as 3 \u00d7 15 = 45"),
        ("What does it cost?", "60 euros", "80 \u2212 20 = 60 euros, that's 25% less than 80 euros"),
        ("How many bytes are 2 KiB?", "2048", "2 \u00b7 1024 = 2048 bytes or 16384 bits"),
        ("How long is it in inches?", "12", "1 foot = 12 inches = 30.48 cm"),
        (
            "How many people live there?",
            "40,000",
            "The city has 40,000 inhabitants, so it is smaller than Linz (200,000).",
        ),
        ("How many rooms?", "25", "There are 25 rooms, 5 per floor on 5 floors."),
    ],
)
def test_the_references_result(question: str, reference: str, answer: str) -> None:
    assert conflict(question, answer, reference) != 1.0


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("20 - 8 = 12", "12"),
        ("60 + 45 = 105, 105 + 15 = 120, less the 15 counted twice, 105 km in all.", "105 km"),
        ("10/40 = 25%, so the remainder, 75%, is the answer", "75%"),
        ("12 apples, because 20 - 8 = 12", ""),
        ("8 + 6 = 14 km (see page 3)", "14 km"),
        ("2 + 2 = 4 -> 4 * 3 = 12 goals", "12 goals"),
        ("It opened in 1990.", ""),
    ],
)
def test_the_text_of_the_result(answer: str, result: str) -> None:
    assert result_of(answer) == result


def test_answers_without_a_calculation_and_references_without_one_number_have_no_result() -> None:
    assert math.isnan(conflict("How many?", "There are 12 apples and 8 pears.", "8"))
    assert math.isnan(conflict("Solve x^2 = 49.", "x = 7 or x = -7", "7 and -7", "x = 7, -7"))
    assert math.isnan(conflict("What is it?", "5 + 8 = 13, total \\boxed{83}", "83"))
    assert conflict("How many?", "20 - 8 = 12", "12") == 0.0


def test_because_may_explain_a_step_before_the_result() -> None:
    question = "8 tables seat 6 guests each, and 5 seats stay empty. How many guests are there?"
    answer = "8 x 6 = 48 seats. Not every seat is taken, because 5 stay empty. So 48 - 5 = {}. There are {} guests."
    assert math.isnan(conflict(question, answer.format(43, 43), "43"))
    assert conflict(question, answer.format(44, 44), "43") == 1.0


def test_a_result_in_a_chinese_sentence() -> None:
    question = "\u8fd8\u5269\u51e0\u9897?"
    assert conflict(question, "3\u00d75=15,24\u221215=9,\u8fd8\u526915\u9897\u3002", "9") == 1.0
    assert conflict(question, "3\u00d75=15,24\u221215=9,\u8fd8\u52699\u9897\u3002", "9") == 0.0


def test_putting_the_result_back_checks_it() -> None:
    answer = "4 - 9 is below zero. So the solution is x = -5. You can put it back: -5 + 9 = 4."
    assert conflict("What is x if x + 9 = 4?", answer, "-5") == 0.0
