"""How an item is written."""

from hypothesis import given
from hypothesis import strategies as st

from gradewire_server.metrics.prompts.template import Rendered, read_template

NEEDED = frozenset({"question", "prediction"})
CAPTION = frozenset({"caption"})


def test_the_prediction_stands_apart() -> None:
    template = read_template("\nQ: {question}\n{prediction} is it\nend\n", "p", needed=NEEDED, optional=CAPTION)
    assert template.render({"question": "a", "prediction": "b"}) == Rendered("Q: a\n", "b", " is it\nend")


def test_a_line_with_an_empty_caption_is_left_out() -> None:
    template = read_template("{caption}:\n{question}\n{prediction}", "p", needed=NEEDED, optional=CAPTION)
    assert template.render({"question": "q", "prediction": "p", "caption": ""}).text == "q\np"
    assert template.render({"question": "q", "prediction": "p", "caption": "c"}).text == "c:\nq\np"


def test_a_caption_between_lines() -> None:
    template = read_template("{question}\n{prediction}\nI: {caption}", "p", needed=NEEDED, optional=CAPTION)
    assert template.render({"question": "q", "prediction": "p", "caption": ""}) == Rendered("q\n", "p", "")
    assert template.render({"question": "q", "prediction": "p", "caption": "c"}) == Rendered("q\n", "p", "\nI: c")


def test_braces_are_doubled() -> None:
    template = read_template("{{{question}}} {{x}} {prediction}", "p", needed=NEEDED, optional=CAPTION)
    assert template.render({"question": "q", "prediction": "p"}).text == "{q} {x} p"


def test_labels_of_fields_are_known() -> None:
    text = "A question: {question}\n- Model's answer : {prediction}\nDecide now.\n{{a}}: b"
    template = read_template(text, "p", needed=NEEDED, optional=CAPTION)
    assert template.field_labels == ("A question", "Model's answer")


@given(st.text(), st.text())
def test_fields_are_put_in_as_they_are(question: str, prediction: str) -> None:
    template = read_template("{question}|{prediction}|", "p", needed=NEEDED, optional=CAPTION)
    assert template.render({"question": question, "prediction": prediction}) == Rendered(
        f"{question}|", prediction, "|"
    )
