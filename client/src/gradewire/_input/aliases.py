"""Names under which the fields of a row are found, in files and in Python."""

from collections.abc import Mapping
from typing import Final

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("id",),
    "question": ("question",),
    "references": ("references", "reference", "answers", "answer", "golden_answer"),
    "prediction": ("prediction", "pred", "response", "candidate"),
    "answer_a": ("answer_a", "response_a"),
    "answer_b": ("answer_b", "response_b"),
    "synthetic_answers": ("synthetic_answers", "syn_ans"),
    "caption": ("caption",),
    "captions": ("captions",),
    "group": ("group", "dataset"),
    "label": ("label", "human_score"),
    "labels": ("labels", "annotations"),
    "flags": ("flags",),
    "question_id": ("question_id",),
    "image": ("image_id", "image"),
    "dataset": ("dataset", "group"),
    "model": ("model",),
}
"""The first name that a row has, with a value, wins."""
TEXT_FIELDS: Final = ("id", "question", "prediction", "caption", "group")
LIST_FIELDS: Final = ("references", "synthetic_answers", "captions")
"""Fields of an item, by what they hold."""
