"""The end of an answer: reasons are cut, names and numbers stay whole."""

import pytest

from gradewire_proto.final_answer import find_final_answer


@pytest.mark.parametrize(
    ("completion", "answer", "position"),
    [
        ("Answer: **5**", "5", "phrase"),
        ("Answer: Yes, because it is red.", "Yes", "phrase"),
        ("Answer: No. The sky is blue.", "No", "phrase"),
        ("Answer: $12.50", "$12.50", "phrase"),
        ("Answer: 10:30 a.m.", "10:30 a.m.", "phrase"),
        ("Answer: 3:2", "3:2", "phrase"),
        ("Answer: J. K. Rowling", "J. K. Rowling", "phrase"),
        ("Answer: Dr. Watson", "Dr. Watson", "phrase"),
        ("Answer: St. John's", "St. John's", "phrase"),
        ("Answer: U.S.A.", "U.S.A.", "phrase"),
        ("Answer: Washington, D.C.", "Washington, D.C.", "phrase"),
        ("Answer: Paris, France", "Paris, France", "phrase"),
        ("Answer: Harry Potter and the Philosopher's Stone", "Harry Potter and the Philosopher's Stone", "phrase"),
        ("Answer: The Good, the Bad and the Ugly", "The Good, the Bad and the Ugly", "phrase"),
        ("Answer: Who Framed Roger Rabbit?", "Who Framed Roger Rabbit?", "phrase"),
        ("Answer: https://example.com/a?b=c", "https://example.com/a?b=c", "phrase"),
        ("Answer: 1,000,000", "1,000,000", "phrase"),
        ("Answer: -3", "-3", "phrase"),
        ("Answer: 5%", "5%", "phrase"),
        ("Answer: 2/3", "2/3", "phrase"),
        ("Answer: vitamin C", "vitamin C", "phrase"),
        ("Answer: A major", "A major", "phrase"),
        ("Answer: red and blue", "red and blue", "phrase"),
        ("Answer: C. S. Lewis", "C. S. Lewis", "phrase"),
        ("Answer: not enough information", "not enough information", "phrase"),
        ("Answer: None", "None", "phrase"),
        ("Answer: Nirvana - Nevermind", "Nirvana - Nevermind", "phrase"),
        ("Answer: Star Wars: A New Hope", "Star Wars: A New Hope", "phrase"),
        ("Answer: Mission: Impossible", "Mission: Impossible", "phrase"),
        ("Answer: 2001: A Space Odyssey", "2001: A Space Odyssey", "phrase"),
        ("Antwort: Die Sonne, die im Zentrum steht.", "Die Sonne", "phrase"),
        ("Antwort: der Hund, die Katze und das Pferd", "der Hund, die Katze und das Pferd", "phrase"),
        ("Antwort: ca. 5 km", "ca. 5 km", "phrase"),
        ("Answer: ~~Paris~~ London", "London", "phrase"),
        ("Answer: `x[0]`", "x[0]", "phrase"),
        ("Answer: 5\nWait, I made a mistake.\nAnswer: 6", "6", "phrase"),
        ("Answer: 5\n\nActually, let me recheck. 2+4 = 6.\n\nAnswer: 6", "6", "phrase"),
        ("Answer: Lima\nExplanation: It is the capital.", "Lima", "phrase"),
        ("Answer: Lima\nReason: It is the capital.", "Lima", "phrase"),
        ("Answer: Lima. It lies on the coast.", "Lima", "phrase"),
        ("Answer: Lima (Peru)", "Lima (Peru)", "phrase"),
        ("Answer: Lima, since Cusco is in the mountains.", "Lima", "phrase"),
        ("Answer: Lima as it is on the coast.", "Lima", "phrase"),
        ("Answer: Lima; Cusco is in the mountains.", "Lima", "phrase"),
        ("Answer: Lima, where the parliament sits.", "Lima", "phrase"),
        ("Answer: 12, or a dozen.", "12, or a dozen", "phrase"),
        ("Answer: about 12", "about 12", "phrase"),
        ("Answer: approximately 3.5 m", "approximately 3.5 m", "phrase"),
        ("Answer: Lima, in Peru.", "Lima, in Peru", "phrase"),
        ("Antwort: Lima, weil Cusco in den Bergen liegt.", "Lima", "phrase"),
        ("Antwort: Lima (Cusco liegt in den Bergen).", "Lima", "phrase"),
        ("Antwort: Lima. Die Stadt liegt an der Küste.", "Lima", "phrase"),
        ("Answer: True. It holds for all x.", "True", "phrase"),
        ("Answer: True, as shown above.", "True", "phrase"),
        ("Answer: Rome [1]", "Rome [1]", "phrase"),
        ('Answer: "Rome"', "Rome", "phrase"),
        ("Answer: Rome\n\n(I'm 90% sure.)", "Rome", "phrase"),
        ("Answer: Rome\n\nPlease tell me if I should explain this answer.", "Rome", "phrase"),
        ("Answer: Rome\nConfidence: high", "Rome", "phrase"),
        ("Answer: Rome\n\nDo you want to know more?", "Rome", "phrase"),
        ("Antwort: Rom\n\nSagen Sie Bescheid, wenn die Antwort nicht hilft.", "Rom", "phrase"),
    ],
)
def test_an_answer_ends_where_its_reason_begins(completion: str, answer: str, position: str) -> None:
    found = find_final_answer(completion)
    assert (found.text, found.position) == (answer, position)


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("The answer is Mars, the fourth planet from the Sun.", "Mars"),
        ("The answer is Romeo and Juliet, a tragedy by Shakespeare.", "Romeo and Juliet"),
        ("Answer: Yes, both of them can vote.", "Yes"),
        ("The answer is 64 when you include the corners.", "64"),
        ("Antwort: Rhein (nicht Donau, die fließt nach Osten).", "Rhein"),
        ("La réponse est le mercure, seul métal liquide.", "le mercure"),
        ("La respuesta es 24 si se cuentan los extremos.", "24"),
        ("答案是水星，离太阳最近的行星。", "水星"),
        ("Answer: Red, white, and blue", "Red, white, and blue"),
        ("Answer: the red one, the blue one and the green one", "the red one, the blue one and the green one"),
        ("Answer: Berlin, Germany", "Berlin, Germany"),
        ("Answer: July 4, 1776", "July 4, 1776"),
        ("Answer: 5 apples, 3 pears and a melon.", "5 apples, 3 pears and a melon"),
        ("答案：红色、黄色和蓝色。", "红色、黄色和蓝色"),
    ],
)
def test_an_explanation_after_a_comma_is_cut_and_a_list_is_not(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text == answer


@pytest.mark.parametrize("name", ["G. Eliot", "E. coli", "C. elegans", "A. Lincoln", "F. Scott Fitzgerald"])
@pytest.mark.parametrize("mark", ["The answer is {}.", "Answer: {}", "<answer>{}</answer>", r"\boxed{{{}}}"])
def test_an_initial_belongs_to_its_name(mark: str, name: str) -> None:
    assert find_final_answer(mark.format(name)).text == name


@pytest.mark.parametrize(
    "completion",
    [
        "A. Rome\nB. Paris\n\nThe answer is B. Paris.",
        r"Options: (A) Rome (B) Paris. So it is \boxed{B. Paris}",
        "Answer: B) Paris",
        "Answer: B: Paris",
        "Answer: B. True",
        "Answer: B. It is the capital of France.",
    ],
)
def test_a_letter_before_the_text_of_an_option_is_a_choice(completion: str) -> None:
    assert find_final_answer(completion).text == "B"
