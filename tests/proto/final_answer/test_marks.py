"""Boxes, tags, keys and brackets around final answers."""

import pytest

from gradewire_proto.final_answer import find_final_answer


@pytest.mark.parametrize(
    ("completion", "answer", "position"),
    [
        ("\\boxed{\\textbf{(C)}\\ 15}", "C", "boxed"),
        ("The final answer is: $\\boxed{5}$", "5", "boxed"),
        ("<answer><b>5</b></answer>", "5", "tagged"),
        ('"final_answer": "Rome"', "Rome", "json"),
        ('{"final": {"answer": "Rome"}}', "Rome", "json"),
        ('{"reasoning": "The answer is Paris because of X", "answer": "Rome"}', "Rome", "json"),
        ('{"answer": true}', "true", "json"),
        ('{"answer": 3.5, "unit": "m"}', "3.5", "json"),
        ("<Answer>Paris</Answer>", "Paris", "tagged"),
        ("<solution>Paris</solution>", "Paris", "tagged"),
        ("<response>Paris</response>", "Paris", "tagged"),
        ("<output>Paris</output>", "Paris", "tagged"),
        ("[ANSWER]Paris[/ANSWER]", "Paris", "tagged"),
        ("Thought: I know it.\nAction: Finish[Paris]", "Paris", "tagged"),
        ("\\boxed{Paris}", "Paris", "boxed"),
        ("\\boxed{\\text{(B) Paris}}", "(B) Paris", "boxed"),
        ("\\boxed{(B)}", "B", "boxed"),
        ("\\boxed{B: Paris}", "B", "boxed"),
        ("\\boxed{\\mathrm{B}}", "B", "boxed"),
        ("\\boxed{3\\text{ apples}}", "3\\text{ apples}", "boxed"),
        ("Thus $\\boxed{1}$ or $\\boxed{2}$.", "2", "boxed"),
        ("$$\\boxed{x=3}$$", "x=3", "boxed"),
        ("\\[\\boxed{\\text{Paris}}\\]", "Paris", "boxed"),
        ('{"name": "Bob", "answer": "Oslo", "score": 3}', "Oslo", "json"),
        ('{"answer": "He said \\"no\\""}', 'He said "no"', "json"),
        ('{"answers": ["Oslo", "Bergen"]}', "Oslo, Bergen", "json"),
        ('{"result": "Oslo"}', "Oslo", "json"),
        ('{"choice": "B"}', "B", "json"),
        ("{'final_answer': 42}", "42", "json"),
        ('{"explanation": "because", "answer": "C) red"}', "C", "json"),
        ('```json\n{"answer": "Oslo"}\n```', "Oslo", "json"),
        ("<answer>\nOslo\n</answer>\n\nI hope this helps!", "Oslo", "tagged"),
        ("<answer>Oslo</answer> because it is the capital.", "Oslo", "tagged"),
        ("<answer>Bergen</answer> Wait, no. <answer>Oslo</answer>", "Oslo", "tagged"),
        ("<lösung>Oslo</lösung>", "Oslo", "tagged"),
        ("<solución>Oslo</solución>", "Oslo", "tagged"),
        ("<result>Oslo</result>", "Oslo", "tagged"),
        ('final_answer("Oslo")', "Oslo", "tagged"),
        ('submit("Oslo")', "Oslo", "tagged"),
    ],
)
def test_a_marked_answer_is_found_without_its_mark(completion: str, answer: str, position: str) -> None:
    found = find_final_answer(completion)
    assert (found.text, found.position) == (answer, position)


def test_a_value_of_json_is_decoded_and_then_has_no_offsets() -> None:
    found = find_final_answer('{"answer": "caf\\u00e9 \\"au lait\\""}')
    assert (found.text, found.start, found.end) == ('café "au lait"', None, None)


def test_a_list_is_joined_and_then_has_no_offsets() -> None:
    found = find_final_answer("Answer:\n\n* GET\n* HEAD")
    assert (found.text, found.start, found.end) == ("GET, HEAD", None, None)


@pytest.mark.parametrize("text", ["Answer:", "<answer></answer>", r"\boxed{}"])
def test_an_empty_mark_gives_a_reason(text: str) -> None:
    found = find_final_answer(text)
    assert (found.text, found.position) == ("", "nothing")
    assert found.reason


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ('{"answer": {"value": 5}}', "5"),
        ('{"final_answer": {"text": "blue whale", "unit": null}}', "blue whale"),
        ('{"answer": {"confidence": 0.9, "option": "B"}}', "B"),
        ('{"answer": {"value": {"value": {"value": 5}}}}', "5"),
        ('{"answer": {}}', '{"answer": {}}'),
    ],
)
def test_a_nested_value_of_json_is_the_answer(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text == answer


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ('The scale tips. Output: { "heavier": "the lemon" }', "the lemon"),
        ('From the left: red, blue.\n{"colour": "blue"}', "blue"),
        ('Two names occur.\n```json\n{"name": "Maria"}\n```', "Maria"),
        ('The method returns {"status": "ok"}', 'The method returns {"status": "ok"}'),
        ('{"a": "x", "b": "y"}', '{"a": "x", "b": "y"}'),
    ],
)
def test_an_object_of_one_value_is_the_answer_unless_a_sentence_contains_it(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text == answer


@pytest.mark.parametrize("bullet", ["- {}", "* {}", "{}", "{},", "1. {}", "• {}", "2) {}"])
@pytest.mark.parametrize(
    "head",
    [
        *("Answer:", "**Answer:**", "The answer is:", "Final answer:", "### Answer", "Antwort:", "Réponse :"),
        *("Respuesta:", "Risposta:", "答案：", "Ответ:", "The colours are primary.\n\nAnswer:"),
    ],
)
def test_the_whole_list_behind_an_announcement_is_the_answer(head: str, bullet: str) -> None:
    lines = "\n".join(bullet.format(each) for each in ("red", "green", "blue"))
    assert find_final_answer(f"{head}\n{lines}").text == "red, green, blue"


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("Answer:\n- Berlin\n- München\n\nI hope this helps!", "Berlin, München"),
        ("Answer:\nred,\ngreen,\nblue", "red, green, blue"),
        ("Answer:\n2\n3\n5", "2, 3, 5"),
        ("Answer:\nx = 2\ny = 3", "x = 2, y = 3"),
        ("Answer:\n- 12\n- 15", "12, 15"),
        ("Answer:\n1. Mercury\n2. Venus\n3. Earth\n\nThese are the inner planets.", "Mercury, Venus, Earth"),
        (
            "Answer:\n- the Treaty of Guadalupe Hidalgo of 1848 with Mexico\n- the Treaty of Paris",
            "the Treaty of Guadalupe Hidalgo of 1848 with Mexico, the Treaty of Paris",
        ),
        ("Answer:\nParis\nIt is the capital.", "Paris"),
        ("Answer:\nParis\n\nExplanation: it is.", "Paris"),
        ("Answer:\n12\nbecause 3 times 4 is 12.", "12"),
        (
            "Answer:\n- Paris\n- This follows because the capital of France has been Paris for a very long time.",
            "Paris",
        ),
        ("Antwort:\n- 3 kg Mehl\n- 2 Eier", "3 kg Mehl, 2 Eier"),
        ("Answer:\n\n* **red**\n* **blue**", "red, blue"),
        ("答案：\n1. 北京\n2. 上海", "北京, 上海"),
        ("Answer:\n12. That is all.", "12"),
        ("First I list them: a, b.\n\nThe answer is:\n- a cat\n- a dog", "a cat, a dog"),
        ("Answer:\n12 kg\n15 kg", "12 kg, 15 kg"),
    ],
)
def test_lines_behind_an_announcement_are_a_list_or_an_answer_with_prose(completion: str, answer: str) -> None:
    assert find_final_answer(completion).text == answer
