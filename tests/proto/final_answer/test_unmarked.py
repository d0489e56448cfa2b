"""Answers without a mark."""

import pytest

from gradewire_proto.final_answer import find_final_answer


@pytest.mark.parametrize(
    ("completion", "answer", "position"),
    [
        ("Venus, not Mars.", "Venus, not Mars.", "whole"),
        ('print("Rome")', 'print("Rome")', "whole"),
        ("**B**", "B", "line"),
        ("**B) Rome**", "B", "line"),
        ("(B)", "B", "whole"),
        ("B. Rome", "B. Rome", "whole"),
        ("B: Rome", "B: Rome", "whole"),
        ("Only B fits.", "Only B fits.", "whole"),
        ("I believe the answer to be 5.", "I believe the answer to be 5.", "whole"),
        ("I'd answer 5.", "I'd answer 5.", "whole"),
        ("Great question! It's Paris.", "Paris", "line"),
        ("Natürlich! Das ist Paris.", "Paris", "line"),
        ("Bonjour ! C'est Paris.", "Paris", "line"),
        ("¡Hola! Es París.", "París", "line"),
        ("I don't know.", "I don't know.", "whole"),
        ("I'm not sure, but I think it is Paris.", "I'm not sure, but I think it is Paris.", "whole"),
        ("What do you mean?", "", "nothing"),
        ("Can you clarify?", "", "nothing"),
        ("Könnten Sie das bitte genauer erklären?", "", "nothing"),
        ("Que voulez-vous dire ?", "", "nothing"),
        ("¿Qué quieres decir?", "", "nothing"),
        ("你能说得更清楚一点吗？", "", "nothing"),
        ("The mitochondria is the powerhouse of the cell.", "The mitochondria is the powerhouse of the cell.", "whole"),
        ("He did not go, but he called.", "He did not go, but he called.", "whole"),
        ("No, it is not allowed because it is dangerous.", "No, it is not allowed because it is dangerous.", "whole"),
        ("Water boils at 100 °C.", "Water boils at 100 °C.", "whole"),
        ("The team played well but lost.", "The team played well but lost.", "whole"),
        ("Many people like tea. Some like coffee.", "Many people like tea. Some like coffee.", "whole"),
        (
            "Initially the king ruled alone. Later a parliament was formed.",
            "Initially the king ruled alone. Later a parliament was formed.",
            "whole",
        ),
        ("At first the metal is solid. Then it melts.", "At first the metal is solid. Then it melts.", "whole"),
        ("It was wrong to do so. He apologised.", "It was wrong to do so. He apologised.", "whole"),
        ("To be, or not to be", "To be, or not to be", "whole"),
        ("The Answer Is Blowin' in the Wind", "The Answer Is Blowin' in the Wind", "whole"),
        ("a = b + c", "a = b + c", "whole"),
        ("y = 2x + 1", "y = 2x + 1", "whole"),
        ("Wait, What?", "Wait, What?", "whole"),
        ("No Country for Old Men", "No Country for Old Men", "whole"),
        ("Sorry, I can't help with that.", "Sorry, I can't help with that.", "whole"),
        ("3 + 4 = 7", "7", "calculation"),
        ("12 * 3 = 36, so 36 apples.", "36", "calculation"),
        ("So 12 * 3 = 36.", "36", "calculation"),
        ("In total, there are 36 apples.", "In total, there are 36 apples.", "whole"),
        ("That leaves 36 apples.", "That leaves 36 apples.", "whole"),
        ("x = 36/2\nx = 18", "x = 18", "calculation"),
        ("~~Paris~~ London", "London", "whole"),
        ("<del>Paris</del> London", "London", "whole"),
        ("| **Answer** | **5** |", "| **Answer** | **5** |", "whole"),
    ],
)
def test_an_answer_without_a_mark_is_found_or_left_whole(completion: str, answer: str, position: str) -> None:
    found = find_final_answer(completion)
    assert (found.text, found.position) == (answer, position)
