"""One text with a label from the embedded judge: it writes several lines, and the metric reads them."""

import asyncio
from typing import Any

import pytest
from tests.server.judges.local.embedded_judge import answers, judging

from gradewire_proto.choices import BinaryQuestions, LaveMode
from gradewire_server.domain.items import Item, Status
from gradewire_server.domain.judge import Generate, Generated
from gradewire_server.domain.metric import NO_MODEL
from gradewire_server.metrics.judged.lave import LAVE, LaveParameters

PROMPT = '''
format = 1
name = "lines"
version = 1
metric = "lave"
item = """
{question} {references} {prediction}"""
[references]
repeat = true
[variants.rationale]
max_tokens = 40
reply = """
{reason}
rating={rating}"""
[[variants.rationale.steps]]
name = "rating"
read = "last-label"
opening = "rating="
labels = { 1 = 1, 2 = 2, 3 = 3 }
[[demonstrations.short]]
question = "Colour?"
references = ["red", "red"]
prediction = "red"
reason = "Same."
rating = "3"
[[demonstrations.short]]
question = "Shape?"
references = ["round", "round"]
prediction = "round"
reason = "Same."
rating = "3"
'''


def test_the_embedded_judge_writes_one_text_that_is_read() -> None:
    parameters = LaveParameters(mode=LaveMode.RATIONALE, binary=BinaryQuestions.JUDGE, prompt=PROMPT)
    item = Item("", "Animal?", ("cat", "cat"), "cat")
    program: Any = LAVE.score(item, parameters, NO_MODEL)
    (need,) = program.send(None)
    assert isinstance(need, Generate)

    async def main() -> Any:
        async with judging() as (judge, _):
            (written,) = await answers(judge, [need])
            return written

    written = asyncio.run(main())
    assert isinstance(written, Generated)
    # It goes on over the end of a line, which ends the text of a step.
    assert written.text.startswith("Same.\nrating=")
    with pytest.raises(StopIteration) as stop:
        program.send((written,))
    result = stop.value.value
    assert (result.status, result.parts.value, result.parts.reason) == (Status.OK, 3.0, written.text)
