"""Sentences of praise: all of them are masked today, and shown where the program says so."""

from unittest import mock

from benchmarks.judges.attacks.unmasked import SENTENCES, as_it_is, praised

from gradewire_server.domain.items import Item
from gradewire_server.metrics.judged import prompt
from gradewire_server.metrics.judged.references import View
from gradewire_server.metrics.prompts import PACKAGE_PROMPTS

FILE = PACKAGE_PROMPTS.find("lave", "")
ROW = {"id": "r", "question": "Who?", "references": ["Ada"], "prediction": "Bob. "}


def test_each_sentence_is_masked_and_shown_without_the_mask() -> None:
    for item in praised([ROW]):
        asked = Item(item["id"], item["question"], tuple(item["references"]), item["prediction"])
        shown = prompt.show_item(asked, FILE, FILE.variants["rating"], View())
        assert shown.masked
        assert "[...]" in shown.rendered.text
        with mock.patch.object(prompt, "without_praise", as_it_is):
            shown = prompt.show_item(asked, FILE, FILE.variants["rating"], View())
        assert not shown.masked
        assert item["prediction"].replace("The student's answer is", "The student's answer is -") in shown.rendered.text


def test_each_answer_has_each_sentence_once() -> None:
    assert [item["prediction"] for item in praised([ROW])] == [f"Bob. {sentence}" for sentence in SENTENCES]
