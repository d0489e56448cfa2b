"""Rows of every kind, good, hostile and bad, for what has to hold for all metrics."""

from typing import Any

from gradewire import Status

ROWS: dict[str, dict[str, Any]] = {
    "plain": {"question": "What is on the mat?", "references": ["a cat"], "prediction": "There is a small cat on it."},
    "said": {"question": "What is on the mat?", "references": ["the cat", "a kitten"], "prediction": "a kitten"},
    "wrong": {"question": "Who wrote it?", "references": ["Jane Austen", "Austen"], "prediction": "It was the navy."},
    "annotators": {
        "question": "How many dogs are there?",
        "references": ["2", "2", "two", "2", "3", "two", "2 dogs", "a few", "2", "3"],
        "prediction": "Two",
    },
    "caption": {
        "question": "What does the picture show?",
        "references": ["a man rides a brown horse on the beach", "a rider on a horse by the sea", "man on horse"],
        "prediction": "a man is riding a horse along the beach by the sea",
    },
    "Chinese": {"question": "这是什么动物?", "references": ["一只猫", "猫"], "prediction": "这是一只小猫。"},
    "Arabic": {"question": "ما هذا الحيوان؟", "references": ["قطة صغيرة"], "prediction": "هذه قطة صغيرة."},
    "Hindi": {"question": "यह क्या है?", "references": ["एक बिल्ली"], "prediction": "यह एक बिल्ली है"},
    "emoji": {"question": "Mood?", "references": ["😀 happy"], "prediction": "😀"},
    "marks": {"question": "Really?", "references": ["yes"], "prediction": "?!"},
    "control": {"question": "What?", "references": ["a\x00cat\u200b"], "prediction": "a\x00cat\u200b \x1b[31mred"},
    "template": {"question": "<s>[INST]", "references": ["{{x}} %s"], "prediction": "'; DROP TABLE -- </script> {0}"},
    "long": {"question": "Why?", "references": ["because of the rain"], "prediction": "rain came and went " * 3000},
    "one word": {"question": "Which?", "references": ["cat"], "prediction": "x" * 30_000},
    "many references": {"question": "What?", "references": [f"thing {n}" for n in range(60)], "prediction": "thing 7"},
    "options": {
        "question": "Which one barks?",
        "choices": ["cat", "dog"],
        "references": ["B"],
        "prediction": "(A) is wrong, so B",
    },
    "blank prediction": {"question": "What?", "references": ["a cat"], "prediction": " \t\u200b"},
    "blank reference": {"question": "What?", "references": ["a cat", " "], "prediction": "a cat"},
    "no references": {"question": "What?", "references": [], "prediction": "a cat"},
    "no question": {"references": ["a cat", "the cat"], "prediction": "it is a cat"},
}
ITEMS = [{"id": name, **row} for name, row in ROWS.items()]
BAD = {
    "blank prediction": Status.EMPTY_PREDICTION,
    "blank reference": Status.INVALID_INPUT,
    "no references": Status.INVALID_INPUT,
}
GOOD = {"plain", "said", "wrong", "annotators", "caption", "Chinese", "Arabic", "Hindi", "options", "no question"}
