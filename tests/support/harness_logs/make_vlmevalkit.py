"""Makes the tables in `vlmevalkit/` with VLMEvalKit's own inference loop and a model that answers from a table.

README.md beside this says how to run it.
"""

import base64
import io
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from PIL import Image

SAID = {
    "metal": "B",
    "fruit": "The answer is A.",
    "bird": "C. owl",
    "colour": "Failed to obtain answer via API.",
    "sign": "STOP",
    "number": "7",
}
CHOICES = [
    {"question": "Which is a metal?", "A": "oak", "B": "iron", "C": "wool", "answer": "B", "category": "matter"},
    {"question": "Which is a fruit?", "A": "pear", "B": "brick", "C": None, "answer": "A", "category": "food"},
    {"question": "Which is a bird?", "A": "trout", "B": "elk", "C": "owl", "answer": "C", "category": "animals"},
    {"question": "Which colour is it?", "A": "red", "B": "blue", "C": None, "answer": "A", "category": "matter"},
]
QUESTIONS = [
    {"question": "What does the sign say?", "answer": "['stop', 'STOP', 'stop sign']", "category": "text"},
    {"question": "Which number is it?", "answer": "007", "category": "numbers"},
]


class Table:
    """A model as VLMEvalKit calls one."""

    is_api = False

    def set_dump_image(self, dump_image: Any) -> None:
        """Takes what writes pictures; none is looked at."""

    def use_custom_prompt(self, _: str) -> bool:
        """Leaves prompts to the data set."""
        return False

    def generate(self, message: list[dict[str, str]], **_: str) -> str:
        """What the table says of words of the question."""
        asked = next(part["value"] for part in message if part["type"] == "text")
        return next(text for words, text in SAID.items() if words in asked)


def without_torchvisions_own_code() -> None:
    """Lets torchvision be imported where its compiled part fits another build of torch; nothing of it is called."""
    package = Path(find_spec("torchvision").origin).parent
    names = re.findall(
        r'register_(?:meta|fake)\("(?:torchvision::)?(\w+)"', (package / "_meta_registrations.py").read_text()
    )
    library = torch.library.Library("torchvision", "DEF")
    for name in dict.fromkeys(names):
        library.define(f"{name}(Tensor a) -> Tensor")
    globals()["_library"] = library


def main(folder: Path) -> None:
    """Runs both data sets once for each format of predictions."""
    picture = io.BytesIO()
    Image.new("RGB", (64, 64), (255, 0, 0)).save(picture, "PNG")
    os.environ["LMUData"] = str(folder / "data")  # noqa: SIM112 - VLMEvalKit spells it so
    (folder / "data").mkdir(parents=True)
    for name, rows in (("GwChoices", CHOICES), ("GwQuestions", QUESTIONS)):
        table = pd.DataFrame([{"index": place, **row} for place, row in enumerate(rows, 1)])
        table["image"] = base64.b64encode(picture.getvalue()).decode()
        table.to_csv(folder / f"data/{name}.tsv", sep="\t", index=False)
    without_torchvisions_own_code()
    from vlmeval.dataset import build_dataset  # noqa: PLC0415 - needs what stands above
    from vlmeval.inference import infer_data_job  # noqa: PLC0415 - as above

    for kind in ("xlsx", "tsv", "json"):
        os.environ["PRED_FORMAT"] = kind
        for name in ("GwChoices", "GwQuestions"):
            infer_data_job(Table(), str(folder), "table", build_dataset(name))


main(Path(sys.argv[1]))
