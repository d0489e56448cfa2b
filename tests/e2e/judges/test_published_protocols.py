"""Protocols in the shape of published ones, from a prompt file to the bytes of a judge's server and back.

The words are our own. Users put the published words in, as docs/guides/judge.md shows.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.fakes.odd_openai import OddServer, completion
from tests.support.servers.in_process import serving

from gradewire import AsyncClient, Compare, JudgeVerdict, Lave, Pair, Status

VOTES: Final = ["lake", "lake", "water", "lake"]
ITEM: Final = {"id": "1", "question": "What is it?", "references": VOTES, "prediction": "a pond"}

ONE_TEXT: Final = '''
format = 1
name = "votes"
version = 1
metric = "lave"
system = "Grade the reply against what people said. Explain, then grade from 1 to 3."
item = """
Q: '{question}'
People: {references}
Reply: '{prediction}'
Result:"""
[references]
plain = "'{reference}'"
separator = ", "
repeat = true
[variants.rationale]
layout = "text"
max_tokens = 100
reply = "{reason} So rating={rating}"
[[variants.rationale.steps]]
name = "rating"
read = "last-label"
opening = "rating="
labels = { 1 = 1, 2 = 2, 3 = 3 }
[[demonstrations.short]]
question = "What is he eating?"
references = ["pie", "pie", "cake"]
prediction = "soup"
reason = "Nobody says soup."
rating = "1"
'''

THREE_LABELS: Final = '''
format = 1
name = "letters"
version = 1
metric = "judge_verdict"
item = """
Does the reply agree with the key? A: yes. B: no. C: the reply is unfinished.
Task: {question}
Key: {references}
Reply: {prediction}
Letter:"""
[references]
separator = " / "
repeat = true
[variants.plain]
demonstrations = false
max_tokens = 64
[[variants.plain.steps]]
name = "verdict"
read = "last-character"
labels = { A = "right", B = "wrong", C = "INVALID_INPUT" }
'''

PAIRWISE: Final = '''
format = 1
name = "steps"
version = 1
metric = "compare"
system = "Think in steps about two replies. Then choose one; a draw is not allowed."
item = """
Picture: {caption}
Request: {question}
Reply A: {first}
Reply B: {second}"""
[variants.reason]
max_tokens = 300
reply = """
{reason}
Thus the better one is: {winner}"""
[[variants.reason.steps]]
name = "winner"
read = "last-label"
opening = "better one is:"
labels = { A = "first", B = "second" }
[[demonstrations.pairs]]
question = "Name the colour."
caption = "A red door."
first = "Red."
second = "Blue."
reason = """
Step 1: the door is red.
Step 2: A says so, B does not."""
winner = "A"
'''


def body(*messages: tuple[str, str], tokens: int) -> dict[str, Any]:
    turns = [{"role": role, "content": text} for role, text in messages]
    return {"model": "m", "messages": turns, "stream": False, "temperature": 0, "max_tokens": tokens}


def test_a_rating_behind_a_reason_in_one_text(tmp_path: Path, minilm: Path) -> None:
    async def main() -> None:
        async with OddServer(answers=[completion("A pond is not a lake. So rating=2", prompt_tokens=90)]) as judge:
            metric = Lave(mode="rationale", binary="judge", value="most_probable", prompt=ONE_TEXT)
            async with asking(judge, tmp_path, minilm) as scorer:
                (result,) = (await scorer.score([ITEM], {"lave": metric})).items
                again = await scorer.score([ITEM], {"lave": metric})
            (heard,) = judge.heard
        assert heard.body == body(
            (
                "user",
                (
                    "Grade the reply against what people said. Explain, then grade from 1 to 3.\n\n"
                    "Q: 'What is he eating?'\nPeople: 'pie', 'pie', 'cake'\nReply: 'soup'\n"
                    "Result: Nobody says soup. So rating=1\n\n"
                    "Q: 'What is it?'\nPeople: 'lake', 'lake', 'water', 'lake'\nReply: 'a pond'\nResult:"
                ),
            ),
            tokens=100,
        )
        score = result.scores["lave"]
        assert (score.status, score.score, score.correct) == (Status.OK, 0.5, True)
        assert (score.parts.reason, score.parts.labels) == ("A pond is not a lake. So rating=2", ("1", "2", "3"))
        assert score.parts.probabilities == (0.0, 1.0, 0.0)
        assert again.items[0].scores["lave"].score == 0.5

    asyncio.run(main())


def test_three_letters_of_which_one_is_no_verdict(tmp_path: Path, minilm: Path) -> None:
    said = {"a pond": "B", "a lake": "It agrees: **A**", "a la": "C", "an ocean": "I am not sure"}

    async def main() -> None:
        def answer(heard: Any) -> bytes:
            reply = heard.body["messages"][0]["content"].partition("Reply: ")[2].partition("\n")[0]
            return completion(said[reply])

        async with OddServer(answers=[answer]) as judge:
            metric = JudgeVerdict(binary="judge", prompt=THREE_LABELS)
            rows = [{**ITEM, "prediction": prediction} for prediction in said]
            async with asking(judge, tmp_path, minilm) as scorer:
                report = await scorer.score(rows, {"v": metric})
        assert body(
            (
                "user",
                (
                    "Does the reply agree with the key? A: yes. B: no. C: the reply is unfinished.\n"
                    "Task: What is it?\nKey: lake / lake / water / lake\nReply: a lake\nLetter:"
                ),
            ),
            tokens=64,
        ) in [heard.body for heard in judge.heard]
        found = [item.scores["v"] for item in report.items]
        assert [(score.status, score.score) for score in found] == [
            (Status.OK, 0.0),
            (Status.OK, 1.0),
            (Status.INVALID_INPUT, None),
            (Status.UNPARSABLE, None),
        ]
        assert found[2].message == "the judge's verdict is 'C', which the prompt maps to INVALID_INPUT"
        assert len(judge.heard) == 4

    asyncio.run(main())


def test_a_forced_choice_between_two_answers_after_steps(tmp_path: Path, minilm: Path) -> None:
    demonstration = (
        ("system", "Think in steps about two replies. Then choose one; a draw is not allowed."),
        ("user", "Picture: A red door.\nRequest: Name the colour.\nReply A: Red.\nReply B: Blue."),
        (
            "assistant",
            "Step 1: the door is red.\nStep 2: A says so, B does not.\nThus the better one is: A",
        ),
    )
    pair = Pair("What lies there?", "a cat", "a dog", captions=("A cat.",), id="p")

    async def main() -> None:
        def answer(heard: Any) -> bytes:
            cat_first = "Reply A: a cat" in heard.body["messages"][-1]["content"]
            return completion(f"Step 1: a cat.\nThus the better one is: {'A' if cat_first else 'B'}")

        async with OddServer(answers=[answer]) as judge, asking(judge, tmp_path, minilm) as scorer:
            by = Compare(mode="reason", caption=True, prompt=PAIRWISE)
            (found,) = await scorer.compare([pair], by=by)
        heard = sorted((each.body for each in judge.heard), key=json.dumps)
        request = "Picture: A cat.\nRequest: What lies there?\n"
        assert heard == [
            body(*demonstration, ("user", f"{request}Reply A: a cat\nReply B: a dog"), tokens=300),
            body(*demonstration, ("user", f"{request}Reply A: a dog\nReply B: a cat"), tokens=300),
        ]
        assert (found.status, found.winner, found.probability_a, found.probability_tie) == (Status.OK, "a", 1.0, 0.0)
        assert [order.reason for order in found.orders] == [
            "Step 1: a cat.\nThus the better one is: A",
            "Step 1: a cat.\nThus the better one is: B",
        ]

    asyncio.run(main())


def test_the_presets_ask_as_often_as_their_papers(tmp_path: Path, minilm: Path) -> None:
    async def main() -> None:
        def answer(heard: Any) -> bytes:
            first_is_cat = "Answer A: a cat" in heard.body["messages"][-1]["content"]
            return completion(f"Fine. So rating = 3\nBetter answer: {'A' if first_is_cat else 'B'}")

        async with OddServer(answers=[answer]) as judge, asking(judge, tmp_path, minilm) as scorer:
            report = await scorer.score([ITEM], "lave:paper")
            assert len(judge.heard) == 1
            (found,) = await scorer.compare([Pair("What?", "a cat", "a dog")], by="compare:visit")
        assert [item.scores["lave:paper"].score for item in report.items] == [1.0]
        assert (found.winner, len(judge.heard)) == ("a", 3)
        assert [len(each.body["messages"]) for each in judge.heard] == [18, 8, 8]

    asyncio.run(main())


@asynccontextmanager
async def asking(judge: OddServer, directory: Path, models: Path) -> AsyncIterator[AsyncClient]:
    """A client of a server whose judge is `judge`."""
    behind = {"judge_backend": "openai", "judge_url": judge.url, "judge_remote_model": "m"}
    async with (
        serving(directory, model_repository=models, **behind) as (port, _),
        AsyncClient(f"127.0.0.1:{port}") as client,
    ):
        yield client
